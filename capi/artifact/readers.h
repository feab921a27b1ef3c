// Readers of the fields that several schemas share. Every function throws NEML2_ERROR_ARTIFACT for a document that does
// not have them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capi/artifact/field.h"
#include "capi/artifact/metadata.h"

namespace neml2_capi::artifact {

// Adds a name to `names`. Throws if it is there already.
void require_unique(const Field& field, const std::string& name, std::set<std::string>& names);

// Returns the choice that the field names. Throws NEML2_ERROR_UNSUPPORTED for an unknown name.
template <class Choice>
Choice read_choice(const Field& field, const std::map<std::string, Choice>& choices) {
  const auto choice = choices.find(field.text());
  if (choice != choices.end()) return choice->second;
  std::string names;
  for (const auto& [name, value] : choices) names += (names.empty() ? "'" : ", '") + name + "'";
  throw field.error(join("is '", field.text(), "', expected one of ", names, "."), NEML2_ERROR_UNSUPPORTED);
}

// Reads a list of variables by `read`. Their names must differ.
using ReadVariable = Variable (*)(const Field&);
std::vector<Variable> read_variables(const Field& list, ReadVariable read);
// Reads an input or output of the model: name, var_type and base_shape (schema 7 and later).
Variable read_model_variable(const Field& field);
// Reads an input or output of the model, whose base shape follows from its type (schemas 2 and 3).
Variable read_typed_variable(const Field& field);
// Returns the base shape of a type, "SR2". Throws NEML2_ERROR_UNSUPPORTED.
Dims base_shape_of(const Field& type);

// Reads [{"name": "strain"}, ...].
std::vector<std::string> read_names(const Field& list);

// Reads the name of a file in the leaf. Throws for a path.
std::string read_package(const Field& field);
// The same, or an empty name if the segment has no such field.
std::string find_package(const Field& segment, const std::string& key);

// Reads [["stress", "strain"], ...].
std::vector<Pair> read_derivatives(const Field& list);

// Reads the parameters. Until schema 3 their shape is their base shape: read_unbatched_parameters().
std::vector<Parameter> read_parameters(const Field& list);
std::vector<Parameter> read_unbatched_parameters(const Field& list);

// Reads the segments, each by the reader of its kind.
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

// Reads the blocks of a segment's Jacobian. `input` is the key of the variable or parameter in the denominator.
std::vector<Pair> read_pairs(const Field& segment, const std::string& key, const std::string& input);

// Reads a forward segment (schema 3 and later).
ForwardSegment read_forward(const Field& field);

// Reads an implicit segment without its packing, whose residual and step come from one package (before schema 12).
ImplicitSegment read_stepping(const Field& field);
// Reads parameters and predictor of an implicit segment.
void read_call(const Field& field, ImplicitSegment& segment);
// Reads how an implicit segment packs its variables (schema 3 and later).
void read_packing(const Field& field, ImplicitSegment& segment);

// Adds the pairs of matrix number `matrix`, which has a row for each component of `outputs` and a column for each of
// `inputs`, all of one point. Throws an error about `field` if they are too many.
void add_matrix_pairs(const Field& field, std::vector<Pair>& pairs, const std::vector<Variable>& outputs,
                      const std::vector<Variable>& inputs, std::int64_t matrix);

// Returns the first implicit segment. Its solver is the model's, as in later schemas.
std::optional<Field> first_implicit(const Field& document);
// Reads the tolerances and the number of iterations.
SolverConfig read_tolerances(const Field& field);

// Returns all pairs of outputs and inputs if every segment has derivatives (schemas 2 and 3), else none.
std::vector<Pair> all_derivatives(const Field& document, const Metadata& metadata);

}  // namespace neml2_capi::artifact
