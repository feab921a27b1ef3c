#include "capi/package/call_spec.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "capi/tensor/dtype_names.h"

namespace neml2_capi::aoti {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

constexpr int deepest = 64;

json parsed(const std::string& text) { return json::parse(text, nullptr, false); }

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
  if (depth > deepest) return;
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
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (!names[i].empty() && std::count(names.begin(), names.end(), names[i]) == 1) specs[i].name = names[i];
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
