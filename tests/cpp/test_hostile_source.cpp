// Source text and lists of operators that were written to crash a reader, or to keep it busy for long.
#include "capi/base/limits.h"
#include "capi/package/call_spec.h"
#include "capi/package/extern_nodes.h"
#include "capi/package/source.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::OperatorNode;
using aoti::parse_extern_nodes;
using aoti::read_signature;
using aoti::Signature;

namespace {

std::string elasticity() {
  Parts parts = parts_of(example("elasticity"));
  return part(parts, ".wrapper.cpp");
}

void replace(std::string& text, std::string_view from, const std::string& to) {
  const std::size_t at = text.find(from);
  expect(at != std::string::npos, join("the source has ", from));
  text.replace(at, from.size(), to);
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Adds lines to the beginning of run_impl.
std::string with_lines(std::string source, const std::string& lines) {
  const std::size_t begin = source.find("void AOTInductorModel::run_impl(");
  source.insert(source.find('\n', begin) + 1, lines);
  return source;
}

// Returns nodes of one operator each, by the names of their outputs.
std::string nodes_named(const std::vector<std::string>& names) {
  std::string nodes;
  for (const std::string& name : names)
    nodes += join(nodes.empty() ? "" : ",",
                  R"({"node":{"target":"aten::x","inputs":[],"outputs":[{"as_tensor":{"name":")", name, R"("}}]}})");
  return R"({"nodes":[)" + nodes + "]}";
}

void specifications_are_not_followed_without_end() {
  std::string source = elasticity();
  const std::size_t begin = source.find("in_spec_ = R\"(") + 14;
  const std::size_t end = source.find(")\";", begin);
  const auto with_spec = [&](const std::string& spec) {
    Signature signature = read_signature(std::string(source).replace(begin, end - begin, spec));
    const std::string before = signature.inputs[0].name;
    aoti::name_tensors(signature, "");
    expect(signature.inputs[0].name == before, "the specification names nothing");
  };
  constexpr int many = 200000;
  with_spec(repeated("[", many) + repeated("]", many));
  // A context is copied with all that is in it.
  const std::string deep = repeated("[", many) + repeated("]", many);
  with_spec(R"([1, {"type": "x", "context": )" + deep + R"(, "children_spec": []}])");
  // Every leaf has the names of all that it lies in.
  std::string leaf = R"({"type":null})", leaves = leaf;
  for (int i = 1; i < 20000; ++i) leaves += "," + leaf;
  const std::string name(100000, 'n');
  with_spec(R"([1, {"type":"builtins.dict","context":"[\")" + name +
            R"(\"]","children_spec":[{"type":"builtins.tuple","context":"null","children_spec":[)" + leaves + "]}]}]");
}

void a_chain_of_names_is_followed_to_its_end() {
  std::string source;
  constexpr int many = 100000;
  for (int i = 0; i < many; ++i) source += join("    auto buf", i + 1, " = std::move(buf", i, ");  // reuse\n");
  source += join("    cpp_fused_0((const int64_t*)(buf", many, ".data_ptr()), s0);\n");
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back(join("buf", i));
  const auto nodes = parse_extern_nodes(nodes_named(names), source);
  for (const OperatorNode& node : nodes)
    expect(node.outputs[0].dtype == DType::int64, "the kernel behind the chain tells the element type");
}

void names_of_outputs_cost_what_they_are_long() {
  std::vector<std::string> names(10000);
  const std::string source = repeated("auto x = y + z;  // nothing of the operators\n", 20000);
  for (const OperatorNode& node : parse_extern_nodes(nodes_named(names), source))
    expect(node.outputs[0].is_read, "an output without a name may be read");
  for (int i = 0; i < 10000; ++i) names[static_cast<std::size_t>(i)] = join("buf", i);
  for (const OperatorNode& node : parse_extern_nodes(nodes_named(names), source))
    expect(!node.outputs[0].dtype, "the source tells nothing of them");
  std::fill(names.begin(), names.end(), "buf0");
  const std::string sizes = "{" + repeated("1L, ", 100000) + "1L}";
  expect_error(NEML2_ERROR_ARTIFACT, "axes", [&] {
    parse_extern_nodes(nodes_named(names), "assert_size_stride(buf0, " + sizes + ", " + sizes + ", \"\");");
  });
  expect_error(NEML2_ERROR_ARTIFACT, "operators", [] { parse_extern_nodes("[" + repeated("[", 100000), ""); });
  names.assign(100000, "buf0");
  expect_error(NEML2_ERROR_ARTIFACT, "operators", [&] { parse_extern_nodes(nodes_named(names), ""); });
}

void lists_of_operators_are_bounded() {
  expect_error(NEML2_ERROR_ARTIFACT, "bytes, expected at most",
               [] { parse_extern_nodes(std::string(limits::json_bytes + 1, ' '), ""); });
}

void axes_that_an_input_has_not_are_refused() {
  const std::string source = elasticity();
  const std::string name = read_signature(source).inputs[0].name;
  expect_error(NEML2_ERROR_ARTIFACT, "axis 15",
               [&] { read_signature(with_lines(source, join("    int64_t s999 = ", name, "_size[15];\n"))); });
  std::string symbols = "s998";
  for (int i = 1; i < 15; ++i) symbols += ", s998";
  const std::string lines = join("    int64_t s998 = ", name, "_size[0];\n    assert_size_stride(", name, ", {",
                                 symbols, "}, {", symbols, "}, \"x\");\n");
  expect_error(NEML2_ERROR_ARTIFACT, "axis", [&] { read_signature(with_lines(source, lines)); });
}

void numbers_of_inputs_and_outputs_are_sensible() {
  std::string source = elasticity();
  const std::size_t at = source.find(": AOTInductorModelBase(");
  const std::size_t first = source.find(',', at), second = source.find(',', first + 1);
  source.replace(first + 1, second - first - 1, "600000");
  source += repeated(" ", 700000);
  expect_error(NEML2_ERROR_ARTIFACT, "expected at most", [&] { read_signature(source); });
}

void a_source_is_read_once() {
  const std::string source = elasticity();
  // A kernel's declaration that has no end.
  read_signature(source + repeated("extern \"C\"  void  ", 60000));
  // Names as long as the source.
  std::string named = source;
  const std::size_t handle = named.find("ConstantHandle ", named.find("check_input_0("));
  named.insert(handle + 15, std::string(100000, 'n'));
  expect_error(NEML2_ERROR_ARTIFACT, "variable", [&] { read_signature(named); });
  // Declarations of sizes, and checks of layouts, for each of many inputs.
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += join("    int64_t u", i, " = s", i, ";\n");
  read_signature(with_lines(source, lines));
  std::string same = source;
  const std::string first = read_signature(source).inputs[0].name, second = read_signature(source).inputs[1].name;
  replace(same, "ConstantHandle " + second, "ConstantHandle " + first);
  expect_error(NEML2_ERROR_ARTIFACT, "", [&] { read_signature(same); });
}

}  // namespace

int main() {
  specifications_are_not_followed_without_end();
  a_chain_of_names_is_followed_to_its_end();
  names_of_outputs_cost_what_they_are_long();
  lists_of_operators_are_bounded();
  axes_that_an_input_has_not_are_refused();
  numbers_of_inputs_and_outputs_are_sensible();
  a_source_is_read_once();
  return 0;
}
