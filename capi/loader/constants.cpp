#include "capi/loader/constants.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "capi/base/error.h"
#include "capi/tensor/layout.h"

namespace neml2_capi::aoti {
namespace {

// Copies `value` with the strides of `like`, whose elements must lie side by side in some order of its axes.
Tensor copied_as(const Tensor& like, const Tensor& value) {
  const Dims order = order_of(like);
  if (!lies_in_order(like, order))
    throw Error(NEML2_ERROR_UNSUPPORTED, "",
                "The package keeps the constant in memory with gaps. Compile the model with a contiguous constant.");
  return Tensor(copied_in_order(value, order).storage(), like.dtype(), like.sizes(), like.strides());
}

// Tells whether the value lies in memory as the code was compiled to find it.
bool lies_as(const Tensor& like, const Tensor& value) {
  return value.strides() == like.strides() && reinterpret_cast<std::uintptr_t>(value.data()) % memory::alignment == 0;
}

}  // namespace

void replace(std::vector<PackagedConstant>& constants, const Constant& value, bool copy) {
  const auto found = std::find_if(constants.begin(), constants.end(), [&](const PackagedConstant& each) {
    return std::string_view(each.name) == value.name;
  });
  if (found == constants.end()) {
    std::string names;
    for (const PackagedConstant& each : constants) add_name(names, each.name);
    throw Error(NEML2_ERROR_NAME, value.name,
                join("The graph has no constant '", value.name, "'; it has ", names.empty() ? "none" : names,
                     ". Small ones (8 elements or fewer), and those whose elements are all equal, may have become "
                     "numbers in the code. Export with neml2_capi.export.package, which keeps them, or compile with "
                     "Inductor's always_keep_tensor_constants."));
  }
  const Tensor& like = found->value;
  if (value.value.dtype() != like.dtype())
    throw Error(NEML2_ERROR_DTYPE, value.name,
                join("The constant '", value.name, "' is ", name_of(like.dtype()), "; got ",
                     name_of(value.value.dtype()), ". Convert the value first."));
  if (!(value.value.sizes() == like.sizes()))
    throw Error(NEML2_ERROR_SHAPE, value.name,
                join("The constant '", value.name, "' has the shape ", like.sizes().str(), "; got ",
                     value.value.sizes().str(), ". Pass a value of that shape."));
  found->value = copy || !lies_as(like, value.value) ? copied_as(like, value.value) : value.value;
  found->value.storage().end_confinement();
}

}  // namespace neml2_capi::aoti
