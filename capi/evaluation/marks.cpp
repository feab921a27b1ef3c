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
  const auto position = [](std::size_t i) { return static_cast<std::int64_t>(i); };
  // Not as the chunk has them: a guess that was given is a solution there.
  marks.give(bindings.inputs, model.variables(Kind::input), Part::input);
  marks.give(bindings.parameters, model.variables(Kind::parameter), Part::parameter);
  marks.give(bindings.tangents, model.variables(Kind::input), Part::tangent);
  marks.give(bindings.cotangents, model.variables(Kind::output), Part::cotangent);
  const auto look = [&](const Vector<Tensor>& results, const std::vector<Points>& arrays, Part part) {
    for (std::size_t i = 0; i < results.size(); ++i)
      if (arrays[i].data) marks.look(Rows(results[i]), {part, position(i)});
  };
  const auto& outputs = model.values_of(Kind::output);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    marks.look(Rows(chunk.values[outputs[i]]), {Part::output, position(i)});
  look(derived.blocks, bindings.blocks, Part::block);
  look(derived.parameter_blocks, bindings.parameter_blocks, Part::parameter_block);
  look(derived.jvps, bindings.jvps, Part::jvp);
  look(derived.adjoints, bindings.adjoints, Part::adjoint);
  look(derived.parameter_adjoints, bindings.parameter_adjoints, Part::parameter_adjoint);
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
  const auto spoil_all = [&](Vector<Tensor>& results, const std::vector<Variable>& variables) {
    for (std::size_t i = 0; i < results.size(); ++i) spoil(results[i], variables[i]);
  };
  const auto spoil_blocks = [&](Vector<Tensor>& blocks, Kind kind) {
    for (std::size_t i = 0; i < blocks.size(); ++i) spoil(blocks[i], model.derivatives(kind).all()[i].block);
  };
  const auto& outputs = model.variables(Kind::output);
  for (std::size_t i = 0; i < outputs.size(); ++i) spoil(chunk.values[model.values_of(Kind::output)[i]], outputs[i]);
  spoil_all(derived.jvps, outputs);
  spoil_all(derived.adjoints, model.variables(Kind::input));
  spoil_all(derived.parameter_adjoints, model.variables(Kind::parameter));
  spoil_blocks(derived.blocks, Kind::input);
  spoil_blocks(derived.parameter_blocks, Kind::parameter);
}

}  // namespace neml2_capi::model
