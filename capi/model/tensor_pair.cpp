#include "capi/model/tensor_pair.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "capi/base/error.h"
#include "capi/base/names.h"

namespace neml2_capi::model {
namespace {

bool is_symmetric_tensor(const Variable& variable) {
  return variable.point_shape == Dims{6} && (variable.type.empty() || variable.type == "SR2");
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::size_t> candidates(const Model& law, Kind kind, std::string_view purpose, std::string_view name,
                                    const char* word) {
  const auto& all = law.variables(kind);
  std::vector<std::size_t> found;
  if (!name.empty()) {
    found.push_back(law.find(kind, name));
    if (const Variable& variable = all[found.front()]; !is_symmetric_tensor(variable))
      throw Error(NEML2_ERROR_SHAPE, variable.name,
                  join(purpose, " takes a symmetric tensor, (6,), for the ", word, "; '", variable.name,
                       "' has the shape ", variable.point_shape.str(), " per point. Name another one."));
    return found;
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_symmetric_tensor(all[i]) && all[i].name.find('~') == std::string::npos &&
        lower(all[i].name).find(word) != std::string::npos)
      found.push_back(i);
  if (!found.empty()) return found;
  throw Error(NEML2_ERROR_NAME, word,
              join(purpose, " is for laws of a strain and a stress, and no ", kind == Kind::input ? "input" : "output",
                   " can be the ", word, ": a symmetric tensor without sites with '", word,
                   "' in its name. Name the variable that is (the field '", word, "' of the source)."));
}

}  // namespace

std::int64_t derivative_of(const Model& law, Kind kind, std::size_t output, std::size_t variable) {
  const auto& all = law.derivatives(kind).all();
  const auto found = std::ranges::find_if(
      all, [&](const Derivative& each) { return each.output == output && each.input == variable; });
  return found == all.end() ? -1 : found - all.begin();
}

TensorPair tensor_pair_of(const Model& law, std::string_view purpose, std::string_view strain,
                          std::string_view stress) {
  std::vector<TensorPair> pairs, compiled;
  for (const std::size_t s : candidates(law, Kind::input, purpose, strain, "strain"))
    for (const std::size_t o : candidates(law, Kind::output, purpose, stress, "stress")) {
      pairs.push_back({s, o});
      if (derivative_of(law, Kind::input, o, s) >= 0) compiled.push_back({s, o});
    }
  if (!compiled.empty()) pairs = compiled;
  const auto name = [&](Kind kind, std::size_t i) -> const std::string& { return law.variables(kind)[i].name; };
  const auto usual = std::ranges::find_if(pairs, [&](const TensorPair& pair) {
    return name(Kind::input, pair.strain) == "strain" && name(Kind::output, pair.stress) == "stress";
  });
  if (pairs.size() == 1) return pairs.front();
  if (usual != pairs.end()) return *usual;
  std::string listed;
  for (const auto& [s, o] : pairs) add_name(listed, join(name(Kind::input, s), " and ", name(Kind::output, o)));
  throw Error(NEML2_ERROR_NAME, "strain",
              join("The strain and the stress of which ", purpose, " speaks can be ", listed,
                   ". Name them (the fields 'strain' and 'stress' of the source)."));
}

}  // namespace neml2_capi::model
