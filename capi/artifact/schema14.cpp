// Schema 14, written by NEML2 3.1.
#include <algorithm>
#include <set>

#include "capi/artifact/schema.h"

namespace neml2_capi::artifact {

namespace {

// Variables of the model, or of an implicit segment. `var_size` repeats the shape, which is a chance to find damage:
// it counts the base axes, and in a segment (where sub_batch_shape is always given) the sub-batch axes too.
Variable read_variable(const Field& field, bool in_segment) {
  Variable variable;
  variable.name = field["name"].text();
  variable.base_shape = field["base_shape"].shape();
  if (in_segment)
    variable.sub_batch_shape = field["sub_batch_shape"].shape();
  else if (const auto sub_batch_shape = field.find("sub_batch_shape"))
    variable.sub_batch_shape = sub_batch_shape->shape();
  if (!in_segment) variable.type = field["var_type"].text();

  const Field size = field["var_size"];
  const std::int64_t expected = (in_segment ? variable.point_shape() : variable.base_shape).product();
  if (size.integer() != expected)
    throw size.error(
        join("is ", size.integer(), ", but the shape of '", variable.name, "' has ", expected, " elements."));
  return variable;
}

void require_unique(const Field& field, const std::string& name, std::set<std::string>& names) {
  if (!names.insert(name).second) throw field.error(join("repeats the name '", name, "'."));
}

std::vector<Variable> read_variables(const Field& field, bool in_segment) {
  std::vector<Variable> variables;
  std::set<std::string> names;
  for (const Field& entry : field.list()) {
    variables.push_back(read_variable(entry, in_segment));
    require_unique(entry["name"], variables.back().name, names);
  }
  return variables;
}

// [{"name": "strain"}, ...]
std::vector<std::string> read_names(const Field& field) {
  std::vector<std::string> names;
  for (const Field& entry : field.list()) names.push_back(entry["name"].text());
  return names;
}

// The name of a file in the leaf, and of nothing elsewhere.
std::string read_package(const Field& field) {
  std::string name = field.text();
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw field.error(join("is '", name, "', expected the plain name of a file."));
  return name;
}

std::string find_package(const Field& segment, const std::string& key) {
  const auto field = segment.find(key);
  return field ? read_package(*field) : std::string();
}

std::vector<std::string> read_parameter_names(const Field& segment, const std::string& key) {
  const auto field = segment.find(key);
  return field ? field->texts() : std::vector<std::string>{};
}

// How the segment's `variables` ("unknowns", ...) are packed into groups.
std::vector<Group> read_groups(const Field& segment, const std::string& key, const std::string& variables_key) {
  const std::vector<Variable> variables = read_variables(segment[variables_key], true);
  std::vector<Group> groups;
  std::set<std::string> packed;
  for (const Field& field : segment[key].list()) {
    Group group;
    const Field structure = field["structure"];
    if (structure.text() != "block" && structure.text() != "dense")
      throw structure.error(join("is '", structure.text(), "', expected 'block' or 'dense'."));
    group.block = structure.text() == "block";
    group.sub_batch_shape = field["sub_batch_shape"].shape();
    for (const Field& entry : field["var_names"].list()) {
      const std::string name = entry.text();
      const auto variable =
          std::find_if(variables.begin(), variables.end(), [&](const Variable& v) { return v.name == name; });
      if (variable == variables.end())
        throw entry.error(join("is '", name, "', which ", segment[variables_key].path(), " does not list."));
      if (group.block && variable->sub_batch_shape != group.sub_batch_shape)
        throw entry.error(join("is '", name, "' of sub-batch shape ", variable->sub_batch_shape.str(),
                               " in a block of ", group.sub_batch_shape.str(), "."));
      require_unique(entry, name, packed);
      group.variables.push_back(*variable);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::int64_t size_of(const std::vector<Group>& groups) {
  std::int64_t size = 0;
  for (const Group& group : groups)
    for (const Variable& variable : group.variables) size += variable.point_shape().product();
  return size;
}

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
  if (feedback.iterations < 1)
    throw field["iterations"].error(join("is ", feedback.iterations, ", expected 1 or more."));
  require_member(field["input"], predictor.inputs, "predictor's inputs");
  require_member(field["output"], predictor.outputs, "predictor's outputs");
  return feedback;
}

// The blocks of a segment's Jacobian; `input` is the key of what they are derivatives with respect to.
std::vector<Pair> read_pairs(const Field& segment, const std::string& key, const std::string& input) {
  std::vector<Pair> pairs;
  std::set<std::string> names;
  for (const Field& field : segment[key].list()) {
    Pair pair{.output = field["out_var"].text(), .input = field[input].text()};
    if (const auto flag = field.find("batch_independent")) pair.batch_independent = flag->boolean();
    if (const auto row = field.find("row_offset")) pair.row = row->count();
    if (const auto column = field.find("col_offset")) pair.column = column->count();
    require_unique(field, join(pair.output, " : ", pair.input), names);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

ForwardSegment read_forward(const Field& field) {
  ForwardSegment segment;
  segment.value = {.package = read_package(field["package"]),
                   .inputs = read_names(field["inputs"]),
                   .parameters = read_parameter_names(field, "param_inputs"),
                   .outputs = read_names(field["outputs"])};
  segment.jacobian_package = find_package(field, "jvp_package");
  if (!segment.jacobian_package.empty()) segment.pairs = read_pairs(field, "jacobian_pairs", "in_var");
  segment.parameter_jacobian_package = find_package(field, "param_jacobian_package");
  if (!segment.parameter_jacobian_package.empty())
    segment.parameter_pairs = read_pairs(field, "param_jacobian_pairs", "param");
  return segment;
}

template <class Choice>
Choice read_choice(const Field& field, const std::map<std::string, Choice>& choices) {
  const auto choice = choices.find(field.text());
  if (choice != choices.end()) return choice->second;
  std::string names;
  for (const auto& [name, value] : choices) names += (names.empty() ? "'" : ", '") + name + "'";
  throw field.error(join("is '", field.text(), "', expected one of ", names, "."), NEML2_ERROR_UNSUPPORTED);
}

Krylov read_krylov(const Field& field) {
  Krylov krylov;
  krylov.method = read_choice<Krylov::Method>(
      field["method"], {{"gmres", Krylov::Method::gmres}, {"bicgstab", Krylov::Method::bicgstab}});
  if (const auto cache = field.find("cache_strategy"))
    krylov.cache = read_choice<Krylov::Cache>(*cache, {{"none", Krylov::Cache::none},
                                                       {"chord", Krylov::Cache::chord},
                                                       {"max_its", Krylov::Cache::max_its}});
  if (const auto restart = field.find("restart")) krylov.restart = restart->count();
  if (krylov.restart < 1) throw field["restart"].error("is 0, expected 1 or more.");
  if (const auto max_its = field.find("max_its")) krylov.max_its = max_its->count();
  if (const auto abs_tol = field.find("abs_tol")) krylov.abs_tol = abs_tol->number();
  if (const auto rel_tol = field.find("rel_tol")) krylov.rel_tol = rel_tol->number();
  if (const auto cache_max_its = field.find("cache_max_its")) krylov.cache_max_its = cache_max_its->count();
  return krylov;
}

// The sensitivity of an implicit segment, if it was compiled.
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
  std::vector<Substep> substeps;
  for (const Field& field : segment["givens"].list()) {
    Substep substep;
    substep.name = field["name"].text();
    substep.role = read_choice<Substep::Role>(field["role"], {{"static", Substep::Role::fixed},
                                                              {"unknown", Substep::Role::fixed},
                                                              {"old_state", Substep::Role::old_state},
                                                              {"old_force", Substep::Role::old_force},
                                                              {"cur_force", Substep::Role::force}});
    if (substep.role != Substep::Role::fixed) substep.partner = field["pair"].text();
    substeps.push_back(std::move(substep));
  }
  return substeps;
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
  segment.parameters = read_parameter_names(field, "param_inputs");
  segment.unknowns = read_groups(field, "unknown_group_infos", "unknowns");
  segment.givens = read_groups(field, "given_group_infos", "givens");
  segment.residuals = read_groups(field, "residual_group_infos", "residuals");
  if (size_of(segment.unknowns) == 0) throw field["unknown_group_infos"].error("holds nothing to solve for.");
  if (size_of(segment.unknowns) != size_of(segment.residuals))
    throw field["residual_group_infos"].error(
        join("has ", size_of(segment.residuals), " equations for ", size_of(segment.unknowns), " unknowns."));
  if (const auto package = field.find("predictor_package")) {
    segment.predictor = {.package = read_package(*package),
                         .inputs = read_names(field["predictor_inputs"]),
                         .parameters = read_parameter_names(field, "predictor_param_inputs"),
                         .outputs = read_names(field["predictor_outputs"])};
    if (const auto feedback = field.find("predictor_feedback"))
      segment.feedback = read_feedback(*feedback, *segment.predictor);
  }
  segment.given_sensitivity = read_sensitivity(field, "jacobian_given_package", "solve_ift_package",
                                               "input_sensitivity", "jacobian_pairs", "in_var");
  segment.parameter_sensitivity = read_sensitivity(field, "dr_dparam_package", "solve_param_package",
                                                   "param_sensitivity", "param_jacobian_pairs", "param");
  segment.max_substepping_level = field["max_substepping_level"].count();
  if (segment.max_substepping_level > 0) segment.substeps = read_substeps(field);
  return segment;
}

Segment read_segment(const Field& field, const std::optional<Krylov>& krylov) {
  const Field kind = field["kind"];
  if (kind.text() == "forward") return read_forward(field);
  if (kind.text() != "implicit")
    throw kind.error(join("is '", kind.text(), "', expected 'forward' or 'implicit'."), NEML2_ERROR_UNSUPPORTED);
  return read_implicit(field, krylov);
}

std::optional<DType> find_dtype(const std::string& name) {
  for (std::int32_t code = 0; code < 64; ++code)
    if (is_dtype(code) && name == name_of(static_cast<DType>(code))) return static_cast<DType>(code);
  return std::nullopt;
}

Parameter read_parameter(const Field& field) {
  Parameter parameter;
  parameter.name = field["name"].text();
  parameter.shape = field["shape"].shape();
  parameter.base_shape = field["param_base_shape"].shape();
  if (parameter.base_shape.size() > parameter.shape.size() ||
      parameter.shape.last(parameter.base_shape.size()) != parameter.base_shape)
    throw field["param_base_shape"].error(
        join("is ", parameter.base_shape.str(), ", and the shape ", parameter.shape.str(), " does not end in it."));
  if (const auto dtype = field.find("dtype")) {
    parameter.dtype = find_dtype(dtype->text());
    if (!parameter.dtype)
      throw dtype->error(join("is '", dtype->text(), "', which is not supported."), NEML2_ERROR_UNSUPPORTED);
  }
  parameter.values = field["values"].numbers();
  if (static_cast<std::int64_t>(parameter.values.size()) != parameter.shape.product())
    throw field["values"].error(
        join("has ", parameter.values.size(), " numbers, expected those of the shape ", parameter.shape.str(), "."));
  return parameter;
}

SolverConfig read_solver(const Field& field) {
  SolverConfig solver;
  solver.atol = field["atol"].number();
  solver.rtol = field["rtol"].number();
  solver.miters = field["miters"].integer();
  solver.ls_type = field["ls_type"].text();
  solver.ls_max_iters = field["ls_max_iters"].integer();
  solver.ls_cutback = field["ls_cutback"].number();
  solver.ls_c = field["ls_c"].number();
  solver.substep_del_tol = field["substep_del_tol"].number();
  return solver;
}

// [["stress", "strain"], ...]
std::vector<Pair> read_derivatives(const Field& field) {
  std::vector<Pair> pairs;
  for (const Field& entry : field.list()) {
    const std::vector<std::string> names = entry.texts();
    if (names.size() != 2) throw entry.error("is not a pair of names.");
    pairs.push_back({.output = names[0], .input = names[1]});
  }
  return pairs;
}

// `variables`: inputs, outputs or parameters, whatever has a name.
template <class Variables>
std::map<std::string, std::string> read_aliases(const Field& aliases, const char* key, const Variables& variables) {
  std::map<std::string, std::string> names;
  const auto field = aliases.find(key);
  if (!field) return names;
  for (const auto& [name, alias] : field->entries()) {
    if (std::none_of(variables.begin(), variables.end(),
                     [&, &inside = name](const auto& v) { return v.name == inside; }))
      throw alias.error("renames a variable that there is not.");
    names.emplace(name, alias.text());
  }
  std::set<std::string> boundary;
  for (const auto& variable : variables) {
    const auto alias = names.find(variable.name);
    require_unique(*field, alias == names.end() ? variable.name : alias->second, boundary);
  }
  return names;
}

}  // namespace

Metadata read_schema14(const Field& document) {
  if (const Field type = document["type"]; type.text() != "composed")
    throw type.error(join("is '", type.text(), "', expected 'composed'."), NEML2_ERROR_UNSUPPORTED);

  Metadata metadata;
  metadata.inputs = read_variables(document["inputs"], false);
  metadata.outputs = read_variables(document["outputs"], false);

  std::set<std::string> names;
  for (const Field& field : document["parameters"].list()) {
    metadata.parameters.push_back(read_parameter(field));
    require_unique(field["name"], metadata.parameters.back().name, names);
  }
  std::optional<Krylov> krylov;
  if (const auto solver = document.find("solver_config")) {
    metadata.solver = read_solver(*solver);
    if (read_choice<bool>((*solver)["solver_kind"], {{"direct", false}, {"krylov", true}}))
      krylov = read_krylov((*solver)["krylov"]);
  }
  for (const Field& field : document["segments"].list()) metadata.segments.push_back(read_segment(field, krylov));
  if (metadata.segments.empty()) throw document["segments"].error("is empty: there is nothing to run.");

  metadata.derivatives = read_derivatives(document["derivatives"]);
  metadata.parameter_derivatives = read_derivatives(document["parameter_derivatives"]);

  if (const auto aliases = document.find("boundary_aliases")) {
    metadata.aliases.inputs = read_aliases(*aliases, "inputs", metadata.inputs);
    metadata.aliases.outputs = read_aliases(*aliases, "outputs", metadata.outputs);
    metadata.aliases.parameters = read_aliases(*aliases, "parameters", metadata.parameters);
  }
  return metadata;
}

}  // namespace neml2_capi::artifact
