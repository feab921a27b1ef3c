// Schemas 14 and 12, written by NEML2 3.1 and 3.0.7.
#include <algorithm>
#include <set>
#include <string_view>

#include "capi/artifact/readers.h"
#include "capi/artifact/schema.h"

namespace neml2_capi::artifact {

namespace {

void require_member(const Field& field, const std::vector<std::string>& names, const char* of) {
  if (std::find(names.begin(), names.end(), field.text()) == names.end())
    throw field.error(join("is '", field.text(), "', which is not among the ", of, "."));
}

Feedback read_feedback(const Field& field, const NamedGraph& predictor) {
  Feedback feedback;
  feedback.input = field["input"].text();
  feedback.output = field["output"].text();
  feedback.iterations = field["iterations"].integer();
  feedback.sub_batch_shape = field["sub_batch_shape"].shape();
  feedback.base_shape = field["base_shape"].shape();
  field.joined(feedback.sub_batch_shape, feedback.base_shape);
  if (feedback.iterations < 1)
    throw field["iterations"].error(join("is ", feedback.iterations, ", expected 1 or more."));
  require_member(field["input"], predictor.inputs, "predictor's inputs");
  require_member(field["output"], predictor.outputs, "predictor's outputs");
  return feedback;
}

// No linear solver makes more in a lifetime.
constexpr std::int64_t most_iterations = 1000000000;

Krylov read_krylov(const Field& field) {
  Krylov krylov;
  krylov.method = read_choice<Krylov::Method>(
      field["method"], {{"gmres", Krylov::Method::gmres}, {"bicgstab", Krylov::Method::bicgstab}});
  if (const auto cache = field.find("cache_strategy"))
    krylov.cache = read_choice<Krylov::Cache>(
        *cache, {{"none", Krylov::Cache::none}, {"chord", Krylov::Cache::chord}, {"max_its", Krylov::Cache::max_its}});
  if (const auto restart = field.find("restart")) krylov.restart = restart->count(most_iterations);
  if (krylov.restart < 1) throw field["restart"].error("is 0, expected 1 or more.");
  if (const auto max_its = field.find("max_its")) krylov.max_its = max_its->count(most_iterations);
  if (const auto abs_tol = field.find("abs_tol")) krylov.abs_tol = abs_tol->number();
  if (const auto rel_tol = field.find("rel_tol")) krylov.rel_tol = rel_tol->number();
  if (const auto cache_max_its = field.find("cache_max_its"))
    krylov.cache_max_its = cache_max_its->count(most_iterations);
  return krylov;
}

// Reads the sensitivity of an implicit segment, if it was compiled.
std::optional<Sensitivity> read_sensitivity(const Field& segment, const char* operator_key, const char* solve_key,
                                            const char* kind_key, const char* pairs_key, const char* input) {
  Sensitivity sensitivity;
  sensitivity.operator_package = find_package(segment, operator_key);
  if (sensitivity.operator_package.empty()) return std::nullopt;
  if (const auto field = segment.find(kind_key); field && (*field)["kind"].text() == "krylov")
    sensitivity.krylov = read_krylov((*field)["krylov"]);
  else
    sensitivity.solve_package = read_package(segment[solve_key]);
  sensitivity.pairs = read_pairs(segment, pairs_key, input);
  return sensitivity;
}

std::vector<Substep> read_substeps(const Field& segment) {
  return segment["givens"].each([](const Field& field) {
    Substep substep;
    substep.name = field["name"].text();
    substep.role = read_choice<Substep::Role>(field["role"], {{"static", Substep::Role::fixed},
                                                              {"unknown", Substep::Role::fixed},
                                                              {"old_state", Substep::Role::old_state},
                                                              {"old_force", Substep::Role::old_force},
                                                              {"cur_force", Substep::Role::force},
                                                              {"incremental", Substep::Role::increment}});
    if (substep.role != Substep::Role::fixed && substep.role != Substep::Role::increment)
      substep.partner = field["pair"].text();
    return substep;
  });
}

ImplicitSegment read_implicit(const Field& field, const std::optional<Krylov>& krylov) {
  ImplicitSegment segment;
  segment.residual_package = read_package(field["residual_package"]);
  segment.krylov = krylov;
  if (krylov) {
    segment.jacobian_package = find_package(field, "jacobian_package");
    segment.matvec_package = read_package(field["matvec_package"]);
    segment.preconditioner_setup_package = find_package(field, "precond_setup_package");
    if (!segment.preconditioner_setup_package.empty())
      segment.preconditioner_apply_package = read_package(field["precond_apply_package"]);
  } else {
    segment.jacobian_package = read_package(field["jacobian_package"]);
    segment.solve_package = read_package(field["solve_package"]);
  }
  read_call(field, segment);
  read_packing(field, segment);
  if (const auto feedback = field.find("predictor_feedback"); feedback && segment.predictor)
    segment.feedback = read_feedback(*feedback, *segment.predictor);
  segment.given_sensitivity = read_sensitivity(field, "jacobian_given_package", "solve_ift_package",
                                               "input_sensitivity", "jacobian_pairs", "in_var");
  segment.parameter_sensitivity = read_sensitivity(field, "dr_dparam_package", "solve_param_package",
                                                   "param_sensitivity", "param_jacobian_pairs", "param");
  segment.max_substepping_level = field["max_substepping_level"].count(30);
  if (segment.max_substepping_level > 0) segment.substeps = read_substeps(field);
  return segment;
}

SolverConfig read_solver(const Field& field) {
  SolverConfig solver = read_tolerances(field);
  solver.ls_type = field["ls_type"].text();
  solver.ls_max_iters = field["ls_max_iters"].integer();
  solver.ls_cutback = field["ls_cutback"].number();
  solver.ls_c = field["ls_c"].number();
  return solver;
}

// Reads the aliases of inputs, outputs or parameters.
template <class Variables>
std::map<std::string, std::string> read_aliases(const Field& aliases, const char* key, const Variables& variables) {
  std::map<std::string, std::string> names;
  const auto field = aliases.find(key);
  if (!field) return names;
  std::set<std::string_view> known;
  for (const auto& variable : variables) known.insert(variable.name);
  for (const auto& [name, alias] : field->entries()) {
    if (!known.contains(name)) throw alias.error(join("renames '", name, "', which is not among the ", key, "."));
    names.emplace(name, alias.text());
  }
  std::set<std::string> boundary;
  for (const auto& variable : variables) {
    const auto alias = names.find(variable.name);
    require_unique(*field, alias == names.end() ? variable.name : alias->second, boundary);
  }
  return names;
}

Metadata read_document(const Field& document) {
  Metadata metadata;
  metadata.inputs = read_variables(document["inputs"], read_model_variable);
  metadata.outputs = read_variables(document["outputs"], read_model_variable);
  metadata.parameters = read_parameters(document["parameters"]);
  std::optional<Krylov> krylov;
  if (const auto solver = document.find("solver_config")) {
    metadata.solver = read_solver(*solver);
    if (read_choice<bool>((*solver)["solver_kind"], {{"direct", false}, {"krylov", true}}))
      krylov = read_krylov((*solver)["krylov"]);
  }
  metadata.segments =
      read_segments(document, read_forward, [&](const Field& field) { return read_implicit(field, krylov); });
  metadata.derivatives = read_derivatives(document["derivatives"]);
  metadata.parameter_derivatives = read_derivatives(document["parameter_derivatives"]);
  if (const auto aliases = document.find("boundary_aliases")) {
    metadata.aliases.inputs = read_aliases(*aliases, "inputs", metadata.inputs);
    metadata.aliases.outputs = read_aliases(*aliases, "outputs", metadata.outputs);
    metadata.aliases.parameters = read_aliases(*aliases, "parameters", metadata.parameters);
  }
  return metadata;
}

}  // namespace

// Schema 12 has no loops of predictors, and no tolerance of the step: the default holds.
Metadata read_schema12(const Field& document) { return read_document(document); }

Metadata read_schema14(const Field& document) {
  Metadata metadata = read_document(document);
  if (const auto solver = document.find("solver_config"))
    metadata.solver.substep_del_tol = (*solver)["substep_del_tol"].number();
  return metadata;
}

}  // namespace neml2_capi::artifact
