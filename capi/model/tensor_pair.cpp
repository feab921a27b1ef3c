#include "capi/model/tensor_pair.h"

#include <algorithm>
#include <cctype>
#include <iterator>
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

// Whether a name says that a variable is a rate or an increment, by the words of neml2_capi/umat/guess.py.
bool is_change(const std::string& name) {
  constexpr std::string_view words[] = {"rate", "rates", "dot", "increment", "increments", "inc", "delta"};
  constexpr std::string_view joined[] = {"strainrate", "stressrate", "dstrain", "dstress"};
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const std::string text = lower(name);
  for (auto begin = text.begin(); (begin = std::find_if(begin, text.end(), is_letter)) != text.end();) {
    const auto end = std::find_if_not(begin, text.end(), is_letter);
    const std::string_view word(begin, end);
    if (std::ranges::find(words, word) != std::end(words)) return true;
    if (std::ranges::any_of(joined, [&](std::string_view each) { return word.starts_with(each); })) return true;
    begin = end;
  }
  return false;
}

[[noreturn]] void refuse_change(std::string_view purpose, const std::string& name, bool is_strain) {
  throw Error(
      NEML2_ERROR_NAME, name,
      join(purpose, " is for laws of a strain and a stress, and the ", is_strain ? "input '" : "output '", name,
           "' is a rate or an increment by its name. ",
           is_strain ? "Write the law with the inputs 'strain' and 'strain~1', and let it take the rate from them"
                     : "Let the law give out the stress, which it integrates from the input 'stress~1'",
           ". If it is the ", is_strain ? "strain" : "stress", " nevertheless, name it (the field '",
           is_strain ? "strain" : "stress", "' of the source)."));
}

std::vector<std::size_t> candidates(const Model& law, Kind kind, std::string_view purpose, std::string_view name,
                                    const char* word, Changes changes) {
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
  if (!found.empty() && changes == Changes::refused) {
    const std::string& first = all[found.front()].name;
    std::erase_if(found, [&](std::size_t i) { return is_change(all[i].name); });
    if (found.empty()) refuse_change(purpose, first, kind == Kind::input);
  }
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

TensorPair tensor_pair_of(const Model& law, std::string_view purpose, std::string_view strain, std::string_view stress,
                          Changes changes) {
  std::vector<TensorPair> pairs, compiled;
  for (const std::size_t s : candidates(law, Kind::input, purpose, strain, "strain", changes))
    for (const std::size_t o : candidates(law, Kind::output, purpose, stress, "stress", changes)) {
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
