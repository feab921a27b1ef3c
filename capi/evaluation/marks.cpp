#include "capi/evaluation/marks.h"

#include <cmath>

#include "capi/model/remark.h"
#include "capi/tensor/rows.h"
#include "capi/tensor/views.h"
#include "capi/values/marks.h"

namespace neml2_capi::model {
namespace {

// No smaller step mends one of zero, at which a rate has no value.
void excuse_steps_of_zero(const Model& model, const Bindings& bindings, Chunk& chunk) {
  for (std::size_t p = 0; p < chunk.reports.status.size(); ++p)
    if (chunk.reports.status[p] > NEML2_NON_FINITE && chunk.reports.iterations[p] == 0 &&
        !std::isfinite(chunk.reports.residual_norm[p]) &&
        !steps_of_zero(model, bindings, chunk.begin + static_cast<std::int64_t>(p)).empty())
      chunk.reports.suggested_cut[p] = 1.0;
}

}  // namespace

Vector<std::size_t> mark(const Model& model, const Bindings& bindings, Chunk& chunk, const Derived& derived) {
  Marks marks(chunk.reports.status, chunk.begin);
  // Not as the chunk has them: a guess that was given is a solution there.
  for (const Part part : given_parts) marks.give(bindings.of(part), model.variables(kind_of(part)), part);
  const auto position = [](std::size_t i) { return static_cast<std::int64_t>(i); };
  const auto& outputs = model.values_of(Kind::output);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    marks.look(Rows(chunk.values[outputs[i]]), {Part::output, position(i)});
  for (const Part part : derived_parts)
    for (std::size_t i = 0; i < derived[part].size(); ++i)
      if (bindings.of(part)[i].data) marks.look(Rows(derived[part][i]), {part, position(i)});
  Vector<std::size_t> lost;
  marks.judge_failed([&](std::size_t p) {
    chunk.reports.suggested_cut[p] = 1.0;
    lost.push_back(p);
  });
  chunk.non_finite = marks.first();
  excuse_steps_of_zero(model, bindings, chunk);
  return lost;
}

void make_nan(const Vector<std::size_t>& positions, const Model& model, Chunk& chunk, Derived& derived) {
  // Gives each point a row of values that are zero, or the same for all points.
  const auto spoil = [&](Tensor& value, const Variable& variable) {
    const Dims sizes = Dims{chunk.points}.then(variable.point_shape);
    value = value.data() ? expanded(value, Dims{chunk.points}.then(value.sizes().last(value.ndim() - 1))).copy()
                         : Tensor::zeros(variable.dtype, sizes);
    const std::int64_t n = row_size(value);
    for (std::size_t p : positions)
      fill_nan(value.data_as<char>() + static_cast<std::int64_t>(p) * n * value.itemsize(), value.dtype(), n);
  };
  const auto& outputs = model.variables(Kind::output);
  for (std::size_t i = 0; i < outputs.size(); ++i) spoil(chunk.values[model.values_of(Kind::output)[i]], outputs[i]);
  for (const Part part : derived_parts)
    for (std::size_t i = 0; i < derived[part].size(); ++i) spoil(derived[part][i], model.variable(part, i));
}

}  // namespace neml2_capi::model
