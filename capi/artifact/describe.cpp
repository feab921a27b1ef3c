// Metadata as JSON, in the same form for every schema: an object for each structure, whose keys are its members.
#include <nlohmann/json.hpp>

#include "capi/artifact/metadata.h"
#include "capi/base/error.h"

template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& out, const std::optional<T>& item) { out = item ? json(*item) : json(); }
};

namespace neml2_capi::artifact {

using nlohmann::json;

NLOHMANN_JSON_SERIALIZE_ENUM(Krylov::Method, {{Krylov::Method::gmres, "gmres"}, {Krylov::Method::bicgstab, "bicgstab"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Krylov::Cache, {{Krylov::Cache::none, "none"},
                                             {Krylov::Cache::chord, "chord"},
                                             {Krylov::Cache::max_its, "max_its"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Substep::Role, {{Substep::Role::fixed, "fixed"},
                                             {Substep::Role::old_state, "old_state"},
                                             {Substep::Role::old_force, "old_force"},
                                             {Substep::Role::force, "force"},
                                             {Substep::Role::increment, "increment"}})

// Defines the function by which nlohmann::json takes a structure. Older releases have no such macro for writing alone.
#define NML2_MEMBERS(Type, ...)                                              \
  static void to_json(json& nlohmann_json_j, const Type& nlohmann_json_t) {  \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__)) \
  }

NML2_MEMBERS(Variable, name, type, sub_batch_shape, base_shape)
NML2_MEMBERS(Pair, output, input, output_base_shape, input_base_shape, batch_independent, row, column, matrix)
NML2_MEMBERS(NamedGraph, package, inputs, parameters, outputs)
NML2_MEMBERS(Feedback, input, output, iterations, sub_batch_shape, base_shape)
NML2_MEMBERS(Krylov, method, cache, restart, max_its, abs_tol, rel_tol, cache_max_its)
NML2_MEMBERS(Substep, name, role, partner)
NML2_MEMBERS(Sensitivity, operator_package, solve_package, krylov, block_package, pairs)
NML2_MEMBERS(ForwardSegment, jacobian_package, pairs, parameter_jacobian_package, parameter_pairs)

static void to_json(json& out, const Group& group) {
  out = {{"structure", group.block ? "block" : "dense"},
         {"sub_batch_shape", group.sub_batch_shape},
         {"variables", group.variables}};
}

NML2_MEMBERS(ImplicitSegment, residual_package, jacobian_package, solve_package, step_package, step_is_taken,
             matvec_package, krylov, preconditioner_setup_package, preconditioner_apply_package, parameters, unknowns,
             givens, residuals, predictor, feedback, given_sensitivity, parameter_sensitivity, max_substepping_level,
             substeps)

static void to_json(json& out, const Segment& segment) {
  std::visit([&](const auto& kind) { out = kind; }, segment);
  const auto* forward = std::get_if<ForwardSegment>(&segment);
  if (forward) out.update(json(forward->value));
  out["kind"] = forward ? "forward" : "implicit";
}

NML2_MEMBERS(Parameter, name, shape, base_shape, values)
NML2_MEMBERS(SolverConfig, atol, rtol, miters, ls_type, ls_max_iters, ls_cutback, ls_c, substep_del_tol)
NML2_MEMBERS(Aliases, inputs, outputs, parameters)
NML2_MEMBERS(Metadata, kernels_only, inputs, outputs, parameters, segments, derivatives, parameter_derivatives, solver,
             aliases)

std::string describe(const Metadata& metadata) {
  json document = metadata;
  document["leaf"] = metadata.leaf.string();
  document["dtype"] = name_of(metadata.dtype);
  for (std::size_t i = 0; i < metadata.parameters.size(); ++i)
    document["parameters"][i]["dtype"] = name_of(metadata.parameters[i].dtype.value_or(metadata.dtype));
  try {
    return document.dump();
  } catch (const json::type_error&) {  // names in the metadata are UTF-8, since they came from JSON
    throw Error(NEML2_ERROR_UNSUPPORTED, metadata.leaf.string(),
                join("The path ", metadata.leaf.string(),
                     " is not UTF-8, and the description, in JSON, cannot tell it. Rename the folder."));
  }
}

}  // namespace neml2_capi::artifact
