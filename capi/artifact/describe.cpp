// Metadata as JSON, in the same form for every schema.
#include <nlohmann/json.hpp>

#include "capi/artifact/metadata.h"

namespace neml2_capi::artifact {

namespace {

using nlohmann::json;

json to_json(const Group& group);
json to_json(const Sensitivity& sensitivity);
json to_json(const Segment& segment);

json to_json(const Dims& shape) { return std::vector<std::int64_t>(shape.begin(), shape.end()); }

json to_json(const Variable& variable) {
  return {{"name", variable.name},
          {"type", variable.type},
          {"sub_batch_shape", to_json(variable.sub_batch_shape)},
          {"base_shape", to_json(variable.base_shape)}};
}

json to_json(const Pair& pair) {
  return {{"output", pair.output},
          {"input", pair.input},
          {"output_base_shape", to_json(pair.output_base_shape)},
          {"input_base_shape", to_json(pair.input_base_shape)},
          {"batch_independent", pair.batch_independent},
          {"row", pair.row},
          {"column", pair.column},
          {"matrix", pair.matrix ? json(*pair.matrix) : json()}};
}

json to_json(const NamedGraph& graph) {
  return {{"package", graph.package},
          {"inputs", graph.inputs},
          {"parameters", graph.parameters},
          {"outputs", graph.outputs}};
}

json to_json(const Feedback& feedback) {
  return {{"input", feedback.input},
          {"output", feedback.output},
          {"iterations", feedback.iterations},
          {"sub_batch_shape", to_json(feedback.sub_batch_shape)},
          {"base_shape", to_json(feedback.base_shape)}};
}

json to_json(const Krylov& krylov) {
  constexpr const char* methods[] = {"gmres", "bicgstab"};
  constexpr const char* caches[] = {"none", "chord", "max_its"};
  return {{"method", methods[static_cast<int>(krylov.method)]},
          {"cache", caches[static_cast<int>(krylov.cache)]},
          {"restart", krylov.restart},
          {"max_its", krylov.max_its},
          {"abs_tol", krylov.abs_tol},
          {"rel_tol", krylov.rel_tol},
          {"cache_max_its", krylov.cache_max_its}};
}

json to_json(const Substep& substep) {
  constexpr const char* roles[] = {"fixed", "old_state", "old_force", "force", "increment"};
  return {{"name", substep.name}, {"role", roles[static_cast<int>(substep.role)]}, {"partner", substep.partner}};
}

template <class T>
json to_json(const std::vector<T>& items) {
  json list = json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

template <class T>
json to_json(const std::optional<T>& item) {
  return item ? to_json(*item) : json();
}

json to_json(const Group& group) {
  return {{"structure", group.block ? "block" : "dense"},
          {"sub_batch_shape", to_json(group.sub_batch_shape)},
          {"variables", to_json(group.variables)}};
}

json to_json(const Sensitivity& sensitivity) {
  return {{"operator_package", sensitivity.operator_package},
          {"solve_package", sensitivity.solve_package},
          {"krylov", to_json(sensitivity.krylov)},
          {"block_package", sensitivity.block_package},
          {"pairs", to_json(sensitivity.pairs)}};
}

json to_json(const ForwardSegment& segment) {
  json object = to_json(segment.value);
  object["kind"] = "forward";
  object["jacobian_package"] = segment.jacobian_package;
  object["pairs"] = to_json(segment.pairs);
  object["parameter_jacobian_package"] = segment.parameter_jacobian_package;
  object["parameter_pairs"] = to_json(segment.parameter_pairs);
  return object;
}

json to_json(const ImplicitSegment& segment) {
  return {{"kind", "implicit"},
          {"residual_package", segment.residual_package},
          {"jacobian_package", segment.jacobian_package},
          {"solve_package", segment.solve_package},
          {"step_package", segment.step_package},
          {"step_is_taken", segment.step_is_taken},
          {"matvec_package", segment.matvec_package},
          {"krylov", to_json(segment.krylov)},
          {"preconditioner_setup_package", segment.preconditioner_setup_package},
          {"preconditioner_apply_package", segment.preconditioner_apply_package},
          {"parameters", segment.parameters},
          {"unknowns", to_json(segment.unknowns)},
          {"givens", to_json(segment.givens)},
          {"residuals", to_json(segment.residuals)},
          {"predictor", to_json(segment.predictor)},
          {"feedback", to_json(segment.feedback)},
          {"given_sensitivity", to_json(segment.given_sensitivity)},
          {"parameter_sensitivity", to_json(segment.parameter_sensitivity)},
          {"max_substepping_level", segment.max_substepping_level},
          {"substeps", to_json(segment.substeps)}};
}

json to_json(const Segment& segment) {
  return std::visit([](const auto& kind) { return to_json(kind); }, segment);
}

json to_json(const Parameter& parameter, DType leaf) {
  return {{"name", parameter.name},
          {"shape", to_json(parameter.shape)},
          {"base_shape", to_json(parameter.base_shape)},
          {"dtype", name_of(parameter.dtype.value_or(leaf))},
          {"values", parameter.values}};
}

json to_json(const SolverConfig& solver) {
  return {{"atol", solver.atol},
          {"rtol", solver.rtol},
          {"miters", solver.miters},
          {"ls_type", solver.ls_type},
          {"ls_max_iters", solver.ls_max_iters},
          {"ls_cutback", solver.ls_cutback},
          {"ls_c", solver.ls_c},
          {"substep_del_tol", solver.substep_del_tol}};
}

}  // namespace

std::string describe(const Metadata& metadata) {
  json parameters = json::array();
  for (const Parameter& parameter : metadata.parameters) parameters.push_back(to_json(parameter, metadata.dtype));
  const json document = {{"leaf", metadata.leaf.string()},
                         {"dtype", name_of(metadata.dtype)},
                         {"inputs", to_json(metadata.inputs)},
                         {"outputs", to_json(metadata.outputs)},
                         {"parameters", parameters},
                         {"segments", to_json(metadata.segments)},
                         {"derivatives", to_json(metadata.derivatives)},
                         {"parameter_derivatives", to_json(metadata.parameter_derivatives)},
                         {"solver", to_json(metadata.solver)},
                         {"aliases",
                          {{"inputs", metadata.aliases.inputs},
                           {"outputs", metadata.aliases.outputs},
                           {"parameters", metadata.aliases.parameters}}}};
  return document.dump();
}

}  // namespace neml2_capi::artifact
