#include "capi/package/call_spec.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "capi/archive/json.h"
#include "capi/base/limits.h"
#include "capi/tensor/dtype_names.h"

namespace neml2_capi::aoti {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

constexpr int deepest = 64;
constexpr auto most_leaves = static_cast<std::size_t>(limits::package_tensors);

json parsed(const std::string& text) {
  std::string ignored;
  return archive::parse_json(text, ignored);
}

// Returns the keys of a dictionary's children, or an empty list for another node.
Names keys_of(const json& tree, std::size_t children) {
  const json context = tree.value("context", json());
  const json keys = context.is_string() ? parsed(context.get<std::string>()) : json();
  const auto is_string = [](const json& key) { return key.is_string(); };
  if (!keys.is_array() || keys.size() != children || !std::all_of(keys.begin(), keys.end(), is_string)) return {};
  return keys.get<Names>();
}

// Appends the path of each leaf from the outermost key on, which is empty for a leaf under no key.
//   {"type": "builtins.dict", "context": "[\"strain\"]", "children_spec": [{"type": null, ...}]}
void collect(const json& tree, const std::string& path, int depth, Names& names) {
  if (depth > deepest || names.size() > most_leaves || path.size() > limits::name_characters) return;
  if (tree.at("type").is_null()) return names.push_back(path);
  const json& children = tree.at("children_spec");
  const Names keys = keys_of(tree, children.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string step = keys.empty() ? std::to_string(i) : keys[i];
    const std::string below = !path.empty() ? path + "." + step : keys.empty() ? "" : step;
    collect(children[i], below, depth + 1, names);
  }
}

// Returns the paths of the leaves of a specification: [version, tree].
Names leaves_of(const std::string& spec) {
  Names names;
  try {
    collect(parsed(spec).at(1), "", 0, names);
  } catch (const json::exception&) {
    return {};
  }
  return names;
}

Names strings_of(const json& notes, const char* key) {
  try {
    return notes.at(key).get<Names>();
  } catch (const json::exception&) {
    return {};
  }
}

// Sets the names where there is one for each tensor. A name that two tensors share is left out.
template <class Spec>
void set_names(std::vector<Spec>& specs, const Names& names) {
  if (names.size() != specs.size()) return;
  std::map<std::string_view, int> uses;
  for (const std::string& name : names) ++uses[name];
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (!names[i].empty() && uses[names[i]] == 1) specs[i].name = names[i];
}

}  // namespace

void name_tensors(Signature& signature, const std::string& text) {
  set_names(signature.inputs, leaves_of(signature.call_spec.in));
  set_names(signature.outputs, leaves_of(signature.call_spec.out));
  const json notes = parsed(text);
  set_names(signature.inputs, strings_of(notes, "inputs"));
  const Names dtypes = strings_of(notes, "output_dtypes");
  for (std::size_t i = 0; i < signature.outputs.size() && i < dtypes.size(); ++i)
    if (!signature.outputs[i].dtype) signature.outputs[i].dtype = dtype_named(dtypes[i]);
}

}  // namespace neml2_capi::aoti
