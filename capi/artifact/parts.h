// What several schemas write alike. Every function throws NEML2_ERROR_ARTIFACT where the document is not so.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capi/artifact/field.h"
#include "capi/artifact/metadata.h"

namespace neml2_capi::artifact {

// Note a name. It must be new.
void require_unique(const Field& field, const std::string& name, std::set<std::string>& names);

// One of the names of `choices`. Throws NEML2_ERROR_UNSUPPORTED for another.
template <class Choice>
Choice read_choice(const Field& field, const std::map<std::string, Choice>& choices) {
  const auto choice = choices.find(field.text());
  if (choice != choices.end()) return choice->second;
  std::string names;
  for (const auto& [name, value] : choices) names += (names.empty() ? "'" : ", '") + name + "'";
  throw field.error(join("is '", field.text(), "', expected one of ", names, "."), NEML2_ERROR_UNSUPPORTED);
}

// A list of variables, each read by `read`; their names must differ.
using ReadVariable = Variable (*)(const Field&);
std::vector<Variable> read_variables(const Field& list, ReadVariable read);
// An input or output of the model: name, var_type and base_shape (schema 7 and later).
Variable read_model_variable(const Field& field);
// An input or output of the model, whose base shape follows from its type (schemas 2 and 3).
Variable read_typed_variable(const Field& field);
// The base shape of a type, "SR2". Throws NEML2_ERROR_UNSUPPORTED.
Dims base_shape_of(const Field& type);

// [{"name": "strain"}, ...]
std::vector<std::string> read_names(const Field& list);

// The name of a file in the leaf, and of nothing elsewhere.
std::string read_package(const Field& field);
// Empty where there is none.
std::string find_package(const Field& segment, const std::string& key);

// [["stress", "strain"], ...]
std::vector<Pair> read_derivatives(const Field& list);

// The parameters of the document. Until schema 3 their shape is their base shape.
std::vector<Parameter> read_parameters(const Field& list);
std::vector<Parameter> read_unbatched_parameters(const Field& list);

// The segments of the document, forward ones and implicit ones each by their reader.
template <class ReadForward, class ReadImplicit>
std::vector<Segment> read_segments(const Field& document, ReadForward&& forward, ReadImplicit&& implicit) {
  std::vector<Segment> segments;
  for (const Field& field : document["segments"].list())
    if (read_choice<bool>(field["kind"], {{"forward", true}, {"implicit", false}}))
      segments.push_back(forward(field));
    else
      segments.push_back(implicit(field));
  if (segments.empty()) throw document["segments"].error("is empty: there is nothing to run.");
  return segments;
}

// The blocks of a segment's Jacobian; `input` is the key of what they are derivatives with respect to.
std::vector<Pair> read_pairs(const Field& segment, const std::string& key, const std::string& input);

// A forward segment (schema 3 and later).
ForwardSegment read_forward(const Field& field);

// What an implicit segment is called with: parameters, predictor and (schema 3 and later) how variables are packed.
void read_call(const Field& field, ImplicitSegment& segment);
void read_packing(const Field& field, ImplicitSegment& segment);

// The pairs of matrix number `matrix`, which has a row for each component of `outputs` and a column for each of
// `inputs`, all of a point.
void add_matrix_pairs(std::vector<Pair>& pairs, const std::vector<Variable>& outputs,
                      const std::vector<Variable>& inputs, std::int64_t matrix);

// The first implicit segment. Its solver is the model's, as in later schemas.
std::optional<Field> first_implicit(const Field& document);
// The tolerances and the number of iterations.
SolverConfig read_tolerances(const Field& field);

// All pairs of outputs and inputs, where every segment has its derivatives (schemas 2 and 3); else none.
std::vector<Pair> all_derivatives(const Metadata& metadata);

}  // namespace neml2_capi::artifact
