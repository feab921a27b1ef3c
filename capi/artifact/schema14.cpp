// Schema 14, written by NEML2 3.1. The packages of derivatives that it also lists are not read yet.
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

ForwardSegment read_forward(const Field& segment) {
  return {{.package = read_package(segment["package"]),
           .inputs = read_names(segment["inputs"]),
           .parameters = read_parameter_names(segment, "param_inputs"),
           .outputs = read_names(segment["outputs"])}};
}

ImplicitSegment read_implicit(const Field& field) {
  ImplicitSegment segment;
  segment.residual_package = read_package(field["residual_package"]);
  segment.jacobian_package = read_package(field["jacobian_package"]);
  segment.solve_package = read_package(field["solve_package"]);
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
  segment.max_substepping_level = field["max_substepping_level"].count();
  return segment;
}

Segment read_segment(const Field& field, const SolverConfig& solver) {
  const Field kind = field["kind"];
  if (kind.text() == "forward") return read_forward(field);
  if (kind.text() != "implicit")
    throw kind.error(join("is '", kind.text(), "', expected 'forward' or 'implicit'."), NEML2_ERROR_UNSUPPORTED);
  if (solver.kind != "direct")
    throw field.error(join("is solved with a '", solver.kind,
                           "' linear solver, and this version supports 'direct'. "
                           "Compile the model with a direct linear solver."),
                      NEML2_ERROR_UNSUPPORTED);
  return read_implicit(field);
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
  solver.kind = field["solver_kind"].text();
  return solver;
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
  if (const auto solver = document.find("solver_config")) metadata.solver = read_solver(*solver);
  for (const Field& field : document["segments"].list())
    metadata.segments.push_back(read_segment(field, metadata.solver));
  if (metadata.segments.empty()) throw document["segments"].error("is empty: there is nothing to run.");

  if (const auto aliases = document.find("boundary_aliases")) {
    metadata.aliases.inputs = read_aliases(*aliases, "inputs", metadata.inputs);
    metadata.aliases.outputs = read_aliases(*aliases, "outputs", metadata.outputs);
    metadata.aliases.parameters = read_aliases(*aliases, "parameters", metadata.parameters);
  }
  return metadata;
}

}  // namespace neml2_capi::artifact
