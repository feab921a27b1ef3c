// Schema 3, written by NEML2 3.0.3: every derivative is compiled, and each implicit segment has a solver of its own.
#include <algorithm>

#include "capi/artifact/readers.h"
#include "capi/artifact/schema.h"

namespace neml2_capi::artifact {

namespace {

// Reads the sensitivity. Its package returns one matrix for each pair of groups.
std::optional<Sensitivity> read_sensitivity(const Field& field, const ImplicitSegment& segment) {
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

ImplicitSegment read_implicit(const Field& field) {
  ImplicitSegment segment = read_stepping(field);
  read_packing(field, segment);
  segment.given_sensitivity = read_sensitivity(field, segment);
  return segment;
}

SolverConfig read_solver(const Field& segment) {
  SolverConfig solver = read_tolerances(segment);
  if (const auto search = segment.find("linesearch")) {
    solver.ls_type = (*search)["type"].text();
    solver.ls_max_iters = (*search)["max_iters"].integer();
    solver.ls_cutback = (*search)["cutback"].number();
    solver.ls_c = (*search)["c"].number();
  }
  return solver;
}

}  // namespace

Metadata read_schema3(const Field& document) {
  Metadata metadata;
  metadata.inputs = read_variables(document["inputs"], read_typed_variable);
  metadata.outputs = read_variables(document["outputs"], read_typed_variable);
  metadata.parameters = read_unbatched_parameters(document["parameters"]);
  metadata.segments = read_segments(document, read_forward, read_implicit);
  metadata.derivatives = all_derivatives(document, metadata);
  if (const auto segment = first_implicit(document)) metadata.solver = read_solver(*segment);
  return metadata;
}

}  // namespace neml2_capi::artifact
