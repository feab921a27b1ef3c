#include "capi/evaluation/remark.h"

#include <cstring>
#include <string_view>

#include "capi/base/error.h"
#include "capi/evaluation/results.h"

namespace neml2_capi::model {
namespace {

bool is_finite(const Points& array, const Variable& variable, std::int64_t index) {
  Vector<std::int32_t> status = {NEML2_OK};
  mark_non_finite(gather(array, variable, index, 1, true), status);
  return status.front() == NEML2_OK;
}

// Returns the position of the value that a variable had a step before, or of none.
std::size_t previous_of(const std::vector<Variable>& inputs, std::string_view name) {
  std::size_t k = 0;
  while (k < inputs.size() && inputs[k].name != join(name, "~1")) ++k;
  return k;
}

}  // namespace

std::string remark_on_inputs(const Model& model, const Bindings& bindings, std::int64_t index) {
  const auto& inputs = model.variables(Kind::input);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!is_finite(bindings.inputs[i], inputs[i], index)) return join("the input '", inputs[i].name, "' is not finite");

  std::string names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t before = previous_of(inputs, inputs[i].name);
    if (before == inputs.size() || !inputs[i].point_shape.empty()) continue;
    const std::int64_t size = itemsize(inputs[i].dtype);
    const char* const now = point(bindings.inputs[i], index, size);
    const char* const then = point(bindings.inputs[before], index, size);
    if (std::memcmp(now, then, static_cast<std::size_t>(size)) == 0)
      add_name(names, join(inputs[i].name, " = ", inputs[before].name));
  }
  return names.empty() ? names : join("a step of zero, ", names);
}

}  // namespace neml2_capi::model
