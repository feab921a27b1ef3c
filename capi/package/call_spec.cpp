#include "capi/package/call_spec.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include "capi/base/json_document.h"
#include "capi/base/limits.h"
#include "capi/tensor/dtype_names.h"

namespace neml2_capi::aoti {
namespace {

using Names = std::vector<std::string>;

constexpr int deepest = 64;
constexpr auto most_leaves = static_cast<std::size_t>(limits::package_tensors);

// Returns the keys of a dictionary's children, or an empty list for another node.
Names keys_of(const Json& tree, std::size_t children) {
  const auto context = tree.find("context");
  if (!context || !context->is_text()) return {};
  try {
    const Names keys = JsonDocument(context->text()).root().texts();
    return keys.size() == children ? keys : Names();
  } catch (const JsonError&) {
    return {};
  }
}

// Appends the path of each leaf from the outermost key on, which is empty for a leaf under no key.
//   {"type": "builtins.dict", "context": "[\"strain\"]", "children_spec": [{"type": null, ...}]}
void collect(const Json& tree, const std::string& path, int depth, Names& names) {
  if (depth > deepest || names.size() > most_leaves || path.size() > limits::name_characters) return;
  if (tree.at("type").is_null()) return names.push_back(path);
  const std::vector<Json> children = tree.at("children_spec").elements();
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
    collect(JsonDocument(spec).root().at(1), "", 0, names);
  } catch (const JsonError&) {
    return {};
  }
  return names;
}

// Returns a list of the notes; empty if they have none.
Names strings_of(const std::string& notes, const char* key) {
  try {
    return JsonDocument(notes).root().at(key).texts();
  } catch (const JsonError&) {
    return {};
  }
}

// Sets the names if there is one for each tensor. Left out is a name that two tensors share, or that would end early
// for callers of the C ABI.
template <class Spec>
void set_names(std::vector<Spec>& specs, const Names& names) {
  if (names.size() != specs.size()) return;
  std::map<std::string_view, int> uses;
  for (const std::string& name : names) ++uses[name];
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (!names[i].empty() && uses[names[i]] == 1 && names[i].find('\0') == std::string::npos) specs[i].name = names[i];
}

}  // namespace

void name_tensors(Signature& signature, const std::string& text) {
  set_names(signature.inputs, leaves_of(signature.call_spec.in));
  set_names(signature.outputs, leaves_of(signature.call_spec.out));
  set_names(signature.inputs, strings_of(text, "inputs"));
  const Names dtypes = strings_of(text, "output_dtypes");
  for (std::size_t i = 0; i < signature.outputs.size() && i < dtypes.size(); ++i)
    if (!signature.outputs[i].dtype) signature.outputs[i].dtype = dtype_named(dtypes[i]);
}

}  // namespace neml2_capi::aoti
