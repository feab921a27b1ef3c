// Schema 3, written by NEML2 3.0.3: every derivative is compiled, and each implicit segment has a solver of its own.
// Schema 2, written by 3.0.0 to 3.0.2, is the same, but unknowns, givens and derivatives are flat.
#include <algorithm>

#include "capi/artifact/readers.h"
#include "capi/artifact/schema.h"

namespace neml2_capi::artifact {

namespace {

// Reads a segment whose package returns its outputs, then one matrix of all outputs by all inputs.
ForwardSegment read_flat_forward(const Field& field) {
  ForwardSegment segment;
  const std::vector<Variable> inputs = read_variables(field["inputs"], read_typed_variable);
  const std::vector<Variable> outputs = read_variables(field["outputs"], read_typed_variable);
  segment.value = {.package = read_package(field["package"]),
                   .inputs = read_names(field["inputs"]),
                   .parameters = field["param_inputs"].texts(),
                   .outputs = read_names(field["outputs"])};
  segment.jacobian_package = find_package(field, "jvp_package");
  if (!segment.jacobian_package.empty()) add_matrix_pairs(field, segment.pairs, outputs, inputs, 0);
  return segment;
}

// Reads a variable whose `unflattened_shape` has the sub-batch axes, then the base axes.
Variable read_flat_variable(const Field& field) {
  Variable variable{field["name"].text(), "", {}, base_shape_of(field["var_type"])};
  const Dims shape = field["unflattened_shape"].shape();
  const std::int64_t sub_ndim = shape.size() - variable.base_shape.size();
  if (sub_ndim < 0 || shape.last(variable.base_shape.size()) != variable.base_shape)
    throw field["unflattened_shape"].error(
        join("is ", shape.str(), ", which does not end in ", variable.base_shape.str(), "."));
  variable.sub_batch_shape = shape.first(sub_ndim);
  field.joined(variable.sub_batch_shape, variable.base_shape);
  if (field["var_size"].integer() != shape.product())
    throw field["var_size"].error(join("is not the number of elements of ", shape.str(), "."));
  return variable;
}

ImplicitSegment read_flat_implicit(const Field& field) {
  ImplicitSegment segment = read_stepping(field);
  segment.step_is_taken = true;
  const std::vector<Variable> unknowns = read_variables(field["unknowns"], read_flat_variable);
  const std::vector<Variable> givens = read_variables(field["givens"], read_flat_variable);
  if (unknowns.empty()) throw field["unknowns"].error("is empty: there is nothing to solve for.");
  segment.unknowns = {{false, {}, unknowns}};
  segment.givens = {{false, {}, givens}};
  segment.residuals = segment.unknowns;
  for (Variable& residual : segment.residuals.front().variables) residual.name += "_residual";
  if (std::string package = find_package(field, "ift_package"); !package.empty()) {
    segment.given_sensitivity.emplace().block_package = std::move(package);
    add_matrix_pairs(field, segment.given_sensitivity->pairs, unknowns, givens, 0);
  }
  return segment;
}

// Reads the sensitivity. Its package returns one matrix for each pair of groups.
std::optional<Sensitivity> read_sensitivity3(const Field& field, const ImplicitSegment& segment) {
  Sensitivity sensitivity;
  sensitivity.block_package = find_package(field, "ift_package");
  const auto is_block = [](const Group& group) { return group.block; };
  // A matrix per sub-batch site tells nothing of the coupling between sites.
  if (sensitivity.block_package.empty() || std::any_of(segment.unknowns.begin(), segment.unknowns.end(), is_block) ||
      std::any_of(segment.givens.begin(), segment.givens.end(), is_block))
    return std::nullopt;
  std::int64_t matrix = 0;
  for (const Group& unknowns : segment.unknowns)
    for (const Group& givens : segment.givens)
      add_matrix_pairs(field, sensitivity.pairs, unknowns.variables, givens.variables, matrix++);
  return sensitivity;
}

ImplicitSegment read_implicit3(const Field& field) {
  ImplicitSegment segment = read_stepping(field);
  read_packing(field, segment);
  segment.given_sensitivity = read_sensitivity3(field, segment);
  return segment;
}

SolverConfig read_solver3(const Field& segment) {
  SolverConfig solver = read_tolerances(segment);
  if (const auto search = segment.find("linesearch")) {
    solver.ls_type = (*search)["type"].text();
    solver.ls_max_iters = (*search)["max_iters"].integer();
    solver.ls_cutback = (*search)["cutback"].number();
    solver.ls_c = (*search)["c"].number();
  }
  return solver;
}

// Reads all but the solver.
template <class ReadForward, class ReadImplicit>
Metadata read_model3(const Field& document, ReadForward&& forward, ReadImplicit&& implicit) {
  Metadata metadata;
  metadata.inputs = read_variables(document["inputs"], read_typed_variable);
  metadata.outputs = read_variables(document["outputs"], read_typed_variable);
  metadata.parameters = read_unbatched_parameters(document["parameters"]);
  metadata.segments = read_segments(document, forward, implicit);
  metadata.derivatives = all_derivatives(document, metadata);
  return metadata;
}

}  // namespace

Metadata read_schema2(const Field& document) {
  Metadata metadata = read_model3(document, read_flat_forward, read_flat_implicit);
  if (const auto segment = first_implicit(document)) metadata.solver = read_tolerances(*segment);
  return metadata;
}

Metadata read_schema3(const Field& document) {
  Metadata metadata = read_model3(document, read_forward, read_implicit3);
  if (const auto segment = first_implicit(document)) metadata.solver = read_solver3(*segment);
  return metadata;
}

}  // namespace neml2_capi::artifact
