// Names that an author gave to the inputs and outputs of a package.
#include "capi/base/limits.h"
#include "capi/package/call_spec.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::Signature;
using Names = std::vector<std::string>;

namespace {

constexpr const char* leaf = R"({"type":null,"context":null,"children_spec":[]})";

std::string node(const std::string& type, const std::string& context, const std::vector<std::string>& children) {
  std::string list;
  for (const std::string& child : children) list += (list.empty() ? "" : ",") + child;
  return R"({"type":"builtins.)" + type + R"(","context":)" + context + R"(,"children_spec":[)" + list + "]}";
}

std::string tuple(const std::vector<std::string>& children) { return node("tuple", R"("null")", children); }

// The keys are JSON within a text: "[\"a\"]".
std::string dictionary(const std::string& keys, const std::vector<std::string>& children) {
  std::string quoted = keys;
  replace_all(quoted, "\"", "\\\"");
  return node("dict", '"' + quoted + '"', children);
}

// Returns the names of as many inputs, each of which is "-" if none was told.
Names names_by(const std::string& tree, std::size_t count, const std::string& notes = "") {
  Signature signature;
  signature.inputs.resize(count);
  for (auto& input : signature.inputs) input.name = "-";
  signature.call_spec.in = "[1," + tree + "]";
  aoti::name_tensors(signature, notes);
  Names names;
  for (const auto& input : signature.inputs) names.push_back(input.name);
  return names;
}

void keys_name_tensors() {
  const std::string nested = dictionary(R"(["strain","parts"])", {leaf, tuple({leaf, leaf})});
  expect(names_by(tuple({nested}), 3) == Names({"strain", "parts.0", "parts.1"}), "the path from the outermost key on");
  expect(names_by(tuple({leaf, nested}), 4) == Names({"-", "strain", "parts.0", "parts.1"}), "a leaf under no key");
  expect(names_by(tuple({nested, nested}), 6) == Names(6, "-"), "a name that two tensors share");
  expect(names_by(nested, 2) == Names(2, "-"), "another number of tensors");
}

void specifications_of_another_form_name_nothing() {
  for (const char* keys : {"[\"a\"]", "[1,2]", "not JSON", "{}"})
    expect(names_by(dictionary(keys, {leaf, leaf}), 2) == Names(2, "-"), join("the keys ", keys));
  expect(names_by(node("dict", "7", {leaf}), 1) == Names({"-"}), "keys that are no text");
  expect(names_by(R"({"type":"x","children_spec":[)" + std::string(leaf) + "]}", 1) == Names({"-"}), "no keys");
  for (const char* tree : {"{}", "7", R"({"type":"x"})", "not JSON"})
    expect(names_by(tree, 1) == Names({"-"}), join("the specification ", tree));
}

void depth_and_number_are_bounded() {
  const auto deep = [](int depth) {
    std::string tree = dictionary(R"(["a"])", {leaf});
    for (int i = 1; i < depth; ++i) tree = tuple({tree});
    return tree;
  };
  expect(names_by(deep(64), 1) == Names({"a"}), "as deep as is read");
  expect(names_by(deep(65), 1) == Names({"-"}), "deeper");
  const auto many = static_cast<std::size_t>(limits::package_tensors);
  std::string keys = "\"k0\"";
  for (std::size_t i = 1; i < many + 2; ++i) keys += join(",\"k", i, "\"");
  const std::string wide = dictionary("[" + keys + "]", std::vector<std::string>(many + 2, leaf));
  expect(names_by(wide, many + 2).back() == "-", "more leaves than a package has tensors");
}

void notes_come_first() {
  const std::string tree = dictionary(R"(["a"])", {leaf});
  expect(names_by(tree, 1, R"({"inputs":["strain"]})") == Names({"strain"}), "the exporter's name");
  for (const char* notes :
       {R"({"inputs":[""]})", R"({"inputs":["a\u0000"]})", R"({"inputs":[7]})", R"({"inputs":[]})", "[]", "not JSON"})
    expect(names_by(tree, 1, notes) == Names({"a"}), join("the notes ", notes));
}

void notes_tell_types_that_the_source_does_not() {
  Signature signature;
  signature.outputs.resize(3);
  signature.outputs[0].dtype = DType::float32;
  signature.call_spec.out = "[1," + dictionary(R"(["stress","b","c"])", {leaf, leaf, leaf}) + "]";
  aoti::name_tensors(signature, R"({"output_dtypes":["float64","float64"]})");
  expect(signature.outputs[0].name == "stress", "outputs have names, too");
  expect(signature.outputs[0].dtype == DType::float32, "the source counts");
  expect(signature.outputs[1].dtype == DType::float64 && !signature.outputs[2].dtype, "then the notes");
  aoti::name_tensors(signature, R"({"output_dtypes":["","","int64","int8"]})");
  expect(signature.outputs[2].dtype == DType::int64, "as many as there are outputs");
}

}  // namespace

int main() {
  keys_name_tensors();
  specifications_of_another_form_name_nothing();
  depth_and_number_are_bounded();
  notes_come_first();
  notes_tell_types_that_the_source_does_not();
  return 0;
}
