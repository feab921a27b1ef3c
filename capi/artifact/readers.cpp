#include "capi/artifact/readers.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "capi/base/limits.h"
#include "capi/tensor/dtype_names.h"

namespace neml2_capi::artifact {

namespace {

// Checks `var_size`, which repeats the shape, to find damage.
void require_size(const Field& field, const Variable& variable, const Dims& shape) {
  const Field size = field["var_size"];
  if (size.integer() != shape.product())
    throw size.error(
        join("is ", size.integer(), ", but the shape of '", variable.name, "' has ", shape.product(), " elements."));
}

// Reads a variable of an implicit segment, whose size counts the sub-batch axes too.
Variable read_segment_variable(const Field& field) {
  Variable variable{field["name"].text(), "", field["sub_batch_shape"].shape(), field["base_shape"].shape()};
  require_size(field, variable, field.joined(variable.sub_batch_shape, variable.base_shape));
  return variable;
}

// Reads an input or output, whose size counts the base shape only.
Variable read_boundary_variable(const Field& field, const Dims& base_shape) {
  Variable variable{field["name"].text(), field["var_type"].text(), {}, base_shape};
  if (const auto shape = field.find("sub_batch_shape")) {
    variable.sub_batch_shape = shape->shape();
    variable.sites_told = true;
  }
  field.joined(variable.sub_batch_shape, base_shape);
  require_size(field, variable, base_shape);
  return variable;
}

// Reads how the segment packs its variables ("unknowns", ...) into groups.
std::vector<Group> read_groups(const Field& segment, const std::string& key, const std::string& variables_key) {
  const std::vector<Variable> variables = read_variables(segment[variables_key], read_segment_variable);
  std::map<std::string_view, const Variable*> by_name;
  for (const Variable& variable : variables) by_name.emplace(variable.name, &variable);
  std::vector<Group> groups;
  std::set<std::string> packed;
  for (const Field& field : segment[key].list(limits::groups)) {
    Group group;
    const Field structure = field["structure"];
    if (structure.text() != "block" && structure.text() != "dense")
      throw structure.error(join("is '", structure.text(), "', expected 'block' or 'dense'."));
    group.block = structure.text() == "block";
    group.sub_batch_shape = field["sub_batch_shape"].shape();
    for (const Field& entry : field["var_names"].list()) {
      const std::string name = entry.text();
      const auto found = by_name.find(name);
      if (found == by_name.end())
        throw entry.error(join("is '", name, "', which ", segment[variables_key].path(), " does not list."));
      const Variable* variable = found->second;
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

std::vector<std::string> find_texts(const Field& segment, const std::string& key) {
  const auto field = segment.find(key);
  return field ? field->texts() : std::vector<std::string>{};
}

Parameter read_parameter(const Field& field, bool batched) {
  Parameter parameter;
  parameter.name = field["name"].text();
  parameter.shape = field["shape"].shape();
  parameter.base_shape = batched ? field["param_base_shape"].shape() : parameter.shape;
  if (parameter.base_shape.size() > parameter.shape.size() ||
      parameter.shape.last(parameter.base_shape.size()) != parameter.base_shape)
    throw field["param_base_shape"].error(
        join("is ", parameter.base_shape.str(), ", and the shape ", parameter.shape.str(), " does not end in it."));
  if (const auto dtype = field.find("dtype")) {
    parameter.dtype = dtype_named(dtype->text());
    if (!parameter.dtype)
      throw dtype->error(join("is '", dtype->text(), "', which is not supported."), NEML2_ERROR_UNSUPPORTED);
  }
  parameter.values = field["values"].numbers();
  if (static_cast<std::int64_t>(parameter.values.size()) != parameter.shape.product())
    throw field["values"].error(
        join("has ", parameter.values.size(), " numbers, expected the shape ", parameter.shape.str(), "."));
  return parameter;
}

std::vector<Parameter> read_parameters(const Field& list, bool batched) {
  std::set<std::string> names;
  return list.each([&](const Field& field) {
    require_unique(field["name"], field["name"].text(), names);
    return read_parameter(field, batched);
  });
}

}  // namespace

void require_unique(const Field& field, const std::string& name, std::set<std::string>& names) {
  if (!names.insert(name).second) throw field.error(join("repeats the name '", name, "'."));
}

std::vector<Variable> read_variables(const Field& list, ReadVariable read) {
  std::set<std::string> names;
  return list.each([&](const Field& field) {
    require_unique(field["name"], field["name"].text(), names);
    return read(field);
  });
}

Variable read_model_variable(const Field& field) { return read_boundary_variable(field, field["base_shape"].shape()); }

Variable read_typed_variable(const Field& field) {
  return read_boundary_variable(field, base_shape_of(field["var_type"]));
}

Dims base_shape_of(const Field& type) {
  return read_choice<Dims>(type, {{"Scalar", {}},
                                  {"Vec", {3}},
                                  {"Rot", {3}},
                                  {"WR2", {3}},
                                  {"MillerIndex", {3}},
                                  {"SR2", {6}},
                                  {"R2", {3, 3}},
                                  {"SSR4", {6, 6}}});
}

std::vector<std::string> read_names(const Field& list) {
  return list.each([](const Field& field) { return field["name"].text(); });
}

std::string read_package(const Field& field) {
  std::string name = field.text();
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw field.error(join("is '", name, "', expected the plain name of a file."));
  return name;
}

std::string find_package(const Field& segment, const std::string& key) {
  const auto field = segment.find(key);
  return field ? read_package(*field) : std::string();
}

std::vector<Pair> read_derivatives(const Field& list) {
  std::vector<Pair> pairs;
  for (const Field& field : list.list(limits::variable_pairs)) {
    const std::vector<std::string> names = field.texts();
    if (names.size() != 2) throw field.error("is not a pair of names.");
    pairs.push_back({.output = names[0], .input = names[1]});
  }
  return pairs;
}

std::vector<Parameter> read_parameters(const Field& list) { return read_parameters(list, true); }

std::vector<Parameter> read_unbatched_parameters(const Field& list) { return read_parameters(list, false); }

std::vector<Pair> read_pairs(const Field& segment, const std::string& key, const std::string& input) {
  std::vector<Pair> pairs;
  std::set<std::string> names;
  for (const Field& field : segment[key].list(limits::variable_pairs)) {
    Pair pair{.output = field["out_var"].text(), .input = field[input].text()};
    pair.output_base_shape = field["out_base_shape"].shape();
    pair.input_base_shape = field[input == "param" ? "param_base_shape" : "in_base_shape"].shape();
    if (const auto flag = field.find("batch_independent")) pair.batch_independent = flag->boolean();
    if (const auto row = field.find("row_offset")) pair.row = row->count(limits::tensor_elements);
    if (const auto column = field.find("col_offset")) pair.column = column->count(limits::tensor_elements);
    field.joined(pair.output_base_shape, pair.input_base_shape);
    require_unique(field, join(pair.output, " : ", pair.input), names);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

ForwardSegment read_forward(const Field& field) {
  ForwardSegment segment;
  segment.value = {.package = read_package(field["package"]),
                   .inputs = read_names(field["inputs"]),
                   .parameters = find_texts(field, "param_inputs"),
                   .outputs = read_names(field["outputs"])};
  segment.jacobian_package = find_package(field, "jvp_package");
  if (!segment.jacobian_package.empty()) segment.pairs = read_pairs(field, "jacobian_pairs", "in_var");
  segment.parameter_jacobian_package = find_package(field, "param_jacobian_package");
  if (!segment.parameter_jacobian_package.empty())
    segment.parameter_pairs = read_pairs(field, "param_jacobian_pairs", "param");
  return segment;
}

ImplicitSegment read_stepping(const Field& field) {
  ImplicitSegment segment;
  segment.residual_package = read_package(field["rhs_package"]);
  segment.step_package = read_package(field["step_package"]);
  read_call(field, segment);
  return segment;
}

void read_call(const Field& field, ImplicitSegment& segment) {
  segment.parameters = find_texts(field, "param_inputs");
  if (const auto package = field.find("predictor_package"))
    segment.predictor = {.package = read_package(*package),
                         .inputs = read_names(field["predictor_inputs"]),
                         .parameters = find_texts(field, "predictor_param_inputs"),
                         .outputs = read_names(field["predictor_outputs"])};
}

void read_packing(const Field& field, ImplicitSegment& segment) {
  segment.unknowns = read_groups(field, "unknown_group_infos", "unknowns");
  segment.givens = read_groups(field, "given_group_infos", "givens");
  segment.residuals = read_groups(field, "residual_group_infos", "residuals");
  if (size_of(segment.unknowns) == 0) throw field["unknown_group_infos"].error("holds nothing to solve for.");
  if (size_of(segment.unknowns) != size_of(segment.residuals))
    throw field["residual_group_infos"].error(
        join("has ", size_of(segment.residuals), " equations for ", size_of(segment.unknowns), " unknowns."));
}

void require_pairs(const Field& field, std::size_t pairs, std::size_t outputs, std::size_t inputs) {
  if (outputs > 0 && inputs > (limits::variable_pairs - std::min(pairs, limits::variable_pairs)) / outputs)
    throw field.error(join("has derivatives of ", outputs, " by ", inputs, " variables, expected at most ",
                           limits::variable_pairs, " pairs."));
}

void add_matrix_pairs(const Field& field, std::vector<Pair>& pairs, const std::vector<Variable>& outputs,
                      const std::vector<Variable>& inputs, std::int64_t matrix) {
  require_pairs(field, pairs.size(), outputs.size(), inputs.size());
  std::int64_t row = 0;
  for (const Variable& output : outputs) {
    std::int64_t column = 0;
    for (const Variable& input : inputs) {
      pairs.push_back({.output = output.name,
                       .input = input.name,
                       .output_base_shape = output.point_shape(),
                       .input_base_shape = input.point_shape(),
                       .row = row,
                       .column = column,
                       .matrix = matrix});
      column += input.point_shape().product();
    }
    row += output.point_shape().product();
  }
}

std::optional<Field> first_implicit(const Field& document) {
  for (const Field& field : document["segments"].list())
    if (field["kind"].text() == "implicit") return field;
  return std::nullopt;
}

SolverConfig read_tolerances(const Field& field) {
  SolverConfig solver;
  solver.atol = field["atol"].number();
  solver.rtol = field["rtol"].number();
  solver.miters = field["miters"].integer();
  return solver;
}

std::vector<Pair> all_derivatives(const Field& document, const Metadata& metadata) {
  std::vector<Pair> pairs;
  for (const Segment& segment : metadata.segments) {
    const auto* forward = std::get_if<ForwardSegment>(&segment);
    if (forward ? forward->jacobian_package.empty() : !std::get<ImplicitSegment>(segment).given_sensitivity) return {};
  }
  require_pairs(document["outputs"], 0, metadata.outputs.size(), metadata.inputs.size());
  for (const Variable& output : metadata.outputs)
    for (const Variable& input : metadata.inputs) pairs.push_back({.output = output.name, .input = input.name});
  return pairs;
}

}  // namespace neml2_capi::artifact
