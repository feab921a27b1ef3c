// Schema 7, written by NEML2 3.0.4 to 3.0.6. The stub has the settings of the solver.
#include "capi/artifact/readers.h"
#include "capi/artifact/schema.h"

namespace neml2_capi::artifact {

namespace {

std::optional<Sensitivity> read_sensitivity7(const Field& segment, const char* package_key, const char* pairs_key,
                                             const char* input) {
  Sensitivity sensitivity;
  sensitivity.block_package = find_package(segment, package_key);
  if (sensitivity.block_package.empty()) return std::nullopt;
  sensitivity.pairs = read_pairs(segment, pairs_key, input);
  return sensitivity;
}

ImplicitSegment read_implicit7(const Field& field) {
  ImplicitSegment segment = read_stepping(field);
  read_packing(field, segment);
  segment.given_sensitivity = read_sensitivity7(field, "ift_package", "jacobian_pairs", "in_var");
  segment.parameter_sensitivity = read_sensitivity7(field, "param_ift_package", "param_jacobian_pairs", "param");
  return segment;
}

}  // namespace

Metadata read_schema7(const Field& document) {
  Metadata metadata;
  metadata.inputs = read_variables(document["inputs"], read_model_variable);
  metadata.outputs = read_variables(document["outputs"], read_model_variable);
  metadata.parameters = read_parameters(document["parameters"]);
  metadata.segments = read_segments(document, read_forward, read_implicit7);
  metadata.derivatives = read_derivatives(document["derivatives"]);
  metadata.parameter_derivatives = read_derivatives(document["parameter_derivatives"]);
  return metadata;
}

}  // namespace neml2_capi::artifact
