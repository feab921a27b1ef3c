#include "capi/evaluation/marks.h"

#include <cmath>

#include "capi/model/remark.h"
#include "capi/values/marks.h"

namespace neml2_capi::model {
namespace {

// No smaller step mends one of zero, at which a rate has no value.
void excuse_steps_of_zero(const Model& model, const Bindings& bindings, Chunk& chunk) {
  for (std::size_t p = 0; p < chunk.status.size(); ++p)
    if (chunk.status[p] > NEML2_NON_FINITE && chunk.iterations[p] == 0 && !std::isfinite(chunk.residual_norm[p]) &&
        !steps_of_zero(model, bindings, chunk.begin + static_cast<std::int64_t>(p)).empty())
      chunk.suggested_cut[p] = 1.0;
}

}  // namespace

void mark(const Model& model, const Bindings& bindings, Chunk& chunk, const Derived& derived) {
  Marks marks(chunk.status, chunk.begin);
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
  marks.judge_failed([&](std::size_t p) { chunk.suggested_cut[p] = 1.0; });
  chunk.non_finite = marks.first();
  excuse_steps_of_zero(model, bindings, chunk);
}

}  // namespace neml2_capi::model
