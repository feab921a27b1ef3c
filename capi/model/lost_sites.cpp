#include "capi/model/lost_sites.h"

#include <map>
#include <string>
#include <variant>

#include "capi/base/error.h"

namespace neml2_capi::model {
namespace {

using Variables = std::map<std::string, const artifact::Variable*>;

// Returns the variables whose base shape the metadata knows, by name.
Variables known_variables(const artifact::Metadata& metadata) {
  Variables known;
  for (const auto* variables : {&metadata.outputs, &metadata.inputs})
    for (const artifact::Variable& variable : *variables) known[variable.name] = &variable;
  for (const artifact::Segment& segment : metadata.segments)
    if (const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment))
      for (const artifact::Group& group : implicit->unknowns)
        for (const artifact::Variable& variable : group.variables) known.emplace(variable.name, &variable);
  return known;
}

// Returns the sub-batch axes of a value; none if they are not known.
Dims sites_of(const std::string& name, const Variables& known, const Scope& scope) {
  const auto it = known.find(name);
  if (it == known.end()) return {};
  const Dims& shape = scope.values()[scope.require(name, "a value")].point_shape;
  return shape.first(std::max<std::int64_t>(shape.size() - it->second->base_shape.size(), 0));
}

}  // namespace

void refuse_lost_sites(const artifact::Metadata& metadata, const Scope& scope) {
  const Variables known = known_variables(metadata);
  for (const artifact::Segment& segment : metadata.segments) {
    const auto* forward = std::get_if<artifact::ForwardSegment>(&segment);
    if (!forward) continue;
    for (const std::string& output : forward->value.outputs) {
      const auto it = known.find(output);
      if (it == known.end() || it->second->sites_told) continue;
      const Dims made = sites_of(output, known, scope);
      for (const std::string& input : forward->value.inputs) {
        const Dims given = sites_of(input, known, scope);
        if (given.empty() || !(made == given.then(given))) continue;
        throw Error(NEML2_ERROR_ARTIFACT, output,
                    join("'", output, "' has the sub-batch sites ", made.str(), " in ", forward->value.package,
                         ", which makes it of '", input, "' with ", given.str(),
                         ": neml2-compile took these sites for points. Compile the model again, with neml2-capi "
                         "compile, which keeps them."));
      }
    }
  }
}

}  // namespace neml2_capi::model
