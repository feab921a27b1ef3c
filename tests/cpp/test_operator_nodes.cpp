// Operators that a package lists: every kind of argument, and how it is matched with the operator's schema.
#include "capi/base/limits.h"
#include "capi/package/bound_arguments.h"
#include "capi/package/extern_nodes.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::Argument;
using aoti::BoundArgument;
using aoti::OperatorNode;
using aoti::parse_extern_nodes;
using Kind = Argument::Kind;

namespace {

constexpr const char* one_output = R"({"as_tensor":{"name":"buf0"}})";

std::string list_of(const std::string& inputs, const std::string& outputs) {
  return R"({"nodes":[{"node":{"target":"mylib::f","inputs":[)" + inputs + R"(],"outputs":[)" + outputs + "]}}]}";
}

std::string input(const std::string& name, const std::string& argument) {
  return R"({"name":")" + name + R"(","arg":)" + argument + "}";
}

OperatorNode node_of(const std::string& inputs, const std::string& outputs = one_output) {
  return parse_extern_nodes(list_of(inputs, outputs), "").at(0);
}

Argument argument_of(const std::string& argument) { return node_of(input("x", argument)).inputs.at(0); }

// --------------------------------------------------------------------------------------------------------------------
// The list
// --------------------------------------------------------------------------------------------------------------------

void values_are_read() {
  expect(argument_of(R"({"as_float":1.5})").real == 1.5, "a number");
  expect(argument_of(R"({"as_bool":true})").boolean, "a truth value");
  expect(argument_of(R"({"as_string":"lower"})").text == "lower", "a text");
  expect(argument_of(R"({"as_none":true})").kind == Kind::none, "nothing");
  expect(argument_of(R"({"as_floats":[1.5,2]})").reals == std::vector<double>({1.5, 2}), "numbers");
  expect(argument_of(R"({"as_bools":[true,false]})").booleans == std::vector<bool>({true, false}), "truth values");
  expect(argument_of(R"({"as_graph":{}})").kind == Kind::unknown, "what no operator takes is no error yet");
}

void tensors_and_integers_of_the_run_are_counted() {
  const auto counts = [](const std::string& argument, std::int64_t tensors, std::int64_t integers) {
    const Argument read = argument_of(argument);
    expect(read.num_tensors() == tensors && read.num_integers() == integers, argument);
  };
  counts(R"({"as_tensor":{"name":"buf1"}})", 1, 0);
  counts(R"({"as_optional_tensor":{"as_tensor":{"name":"buf1"}}})", 1, 0);
  counts(R"({"as_optional_tensor":{"as_none":true}})", 0, 0);
  counts(R"({"as_tensors":[{"name":"buf1"},{"name":"buf2"}]})", 2, 0);
  counts(R"({"as_optional_tensors":[{"as_tensor":{"name":"buf1"}},{"as_none":true}]})", 1, 0);
  counts(R"({"as_int":7})", 0, 1);
  counts(R"({"as_sym_ints":[{"as_int":7},{"as_name":"s17"}]})", 0, 2);
  counts(R"({"as_float":7.0})", 0, 0);
}

// torch.export has numbers of its own.
void numbers_are_those_of_torch() {
  const auto number = [](const std::string& kind, int exported) {
    return argument_of(join("{\"as_", kind, "\":", exported, "}")).number;
  };
  expect(number("scalar_type", 8) == 7 && number("scalar_type", 13) == 15 && number("scalar_type", 14) == -1,
         "float64, bfloat16, and one that is not known");
  expect(number("layout", 7) == 0 && number("layout", 1) == -1, "strided, sparse");
  expect(number("memory_format", 1) == 0 && number("memory_format", 4) == 1, "contiguous, preserved");
  expect(number("memory_format", 0) == -1 && number("memory_format", 5) == -1, "unknown ones");
  const Argument numbered = argument_of(R"({"as_device":{"type":"cuda","index":1}})");
  expect(numbered.text == "cuda" && numbered.number == 1, "a device by its number");
  expect(argument_of(R"({"as_device":{"type":"cpu","index":null}})").number == -1, "a device without one");
}

void malformed_lists_are_refused() {
  for (const char* argument : {"7", R"({"as_int":1,"as_float":1.0})", R"({"as_optional_tensor":[]})"})
    expect_error(NEML2_ERROR_ARTIFACT, "a malformed argument x of the operator mylib::f",
                 [&] { argument_of(argument); });
  for (const char* argument : {R"({"as_float":"x"})", R"({"as_bools":[1.5,{}]})", R"({"as_device":{"type":"cpu"}})"})
    expect_error(NEML2_ERROR_ARTIFACT, "The list of operators in the package is malformed",
                 [&] { argument_of(argument); });
  expect_error(NEML2_ERROR_ARTIFACT, "malformed", [] { parse_extern_nodes("{}", ""); });
  expect_error(NEML2_ERROR_ARTIFACT, "malformed", [] { node_of("", R"({"as_tensor":{}})"); });
  std::string outputs = one_output;
  for (std::size_t i = 0; i < limits::operator_outputs; ++i) outputs += ",{}";
  expect_error(NEML2_ERROR_ARTIFACT, join("with ", limits::operator_outputs, " outputs"),
               [&] { node_of("", outputs); });
}

void the_source_tells_of_outputs() {
  const auto output_in = [](const std::string& name, const std::string& source) {
    return parse_extern_nodes(list_of("", R"({"as_tensor":{"name":")" + name + R"("}})"), source).at(0).outputs.at(0);
  };
  const std::string call = "aoti_torch_proxy_executor_call_function(proxy_executor, 0, buf0_handle, buf0);\n";
  expect(!output_in("buf0", call).is_read, "the call alone does not read it");
  expect(output_in("buf0", call + "f(buf0);\n").is_read, "another mention does");
  expect(!output_in("buf0", "RAIIAtenTensorHandle buf0(buf0_handle);\nbuf0.reset();\n" + call).is_read,
         "a declaration and a release do not");
  for (const char* declaration : {"buf0(buf1_handle);\n", "buf0(buf0_other);\n"})
    expect(output_in("buf0", declaration + call).is_read, join("another declaration does: ", declaration));
  expect(output_in("buf0", call + "g((const float*)(buf0.data_ptr()));\n").dtype == DType::float32, "its type");

  const auto checked = output_in("buf0", "assert_size_stride(buf0, {s17, 3L}, {3L, 1L}, \"f\");\n");
  expect(checked.has_layout && checked.sizes.at(0) == "s17" && checked.strides.at(1) == "1L", "its layout");
  expect(!output_in("buf0", "assert_size_stride(buf0, {s17").has_layout, "half a check tells nothing");
  const std::string longest(limits::source_name_characters, 's');
  expect(output_in("buf0", "assert_size_stride(buf0, {" + longest + "}, {1L}, \"f\");").has_layout, "a long size");
  expect_error(NEML2_ERROR_ARTIFACT, "a size of 129 characters for buf0",
               [&] { output_in("buf0", "assert_size_stride(buf0, {" + longest + "s}, {1L}, \"f\");"); });
  expect(output_in(longest + "s", "f(" + longest + "s);").is_read, "a name beyond the limit may be read");
}

// --------------------------------------------------------------------------------------------------------------------
// The schema
// --------------------------------------------------------------------------------------------------------------------

std::vector<BoundArgument> bound(const OperatorNode& node, const std::string& parameters,
                                 const std::string& results = "Tensor") {
  const auto schema = aoti::parse_schema("mylib::f(" + parameters + ") -> " + results);
  return aoti::bind_arguments(node, schema, "nobody takes. Write the model without it.");
}

void refused(const std::string& message, const OperatorNode& node, const std::string& parameters,
             const std::string& results = "Tensor") {
  for (const std::string& text : {"mylib::f with " + message, std::string(", which nobody takes. Write the model")})
    expect_error(NEML2_ERROR_UNSUPPORTED, text, [&] { bound(node, parameters, results); });
}

void an_argument_has_the_type_of_its_parameter() {
  struct Example {
    const char* type;
    const char* argument;
  };
  constexpr Example examples[] = {
      {"Tensor", R"({"as_tensor":{"name":"buf1"}})"},
      {"Tensor[]", R"({"as_tensors":[{"name":"buf1"}]})"},
      {"Tensor?[]", R"({"as_optional_tensors":[{"as_none":true}]})"},
      {"SymInt", R"({"as_sym_int":{"as_name":"s17"}})"},
      {"int[2]", R"({"as_ints":[1,2]})"},
      {"float", R"({"as_float":1.5})"},
      {"float[]", R"({"as_floats":[1.5]})"},
      {"bool", R"({"as_bool":true})"},
      {"bool[3]", R"({"as_bools":[true,true,false]})"},
      {"str", R"({"as_string":"x"})"},
      {"ScalarType", R"({"as_scalar_type":8})"},
      {"Layout", R"({"as_layout":7})"},
      {"MemoryFormat", R"({"as_memory_format":1})"},
      {"Device", R"({"as_device":{"type":"cpu","index":null}})"},
  };
  // A list of tensors may have gaps.
  const auto is_tensors = [](std::string_view type) { return type == "Tensor[]" || type == "Tensor?[]"; };
  for (const Example& given : examples)
    for (const Example& wanted : examples) {
      const OperatorNode node = node_of(input("x", given.argument));
      if (std::string_view(given.type) == wanted.type || (is_tensors(given.type) && is_tensors(wanted.type)))
        expect(!bound(node, join(wanted.type, " x")).at(0).is_default, join(given.argument, " as ", wanted.type));
      else
        refused("the argument ", node, join(wanted.type, " x"));
    }
  expect(bound(node_of(input("x", R"({"as_device":{"type":"cuda","index":0}})")), "Device? x").size() == 1, "CUDA");
}

void what_no_parameter_takes_is_refused() {
  const auto refused_as = [](const std::string& type, const std::string& argument, const std::string& message) {
    refused("the argument " + message, node_of(input("x", argument)), type + " x");
  };
  refused_as("Tensor", R"({"as_none":true})", "Tensor x of the kind as_none");
  refused_as("int[2]", R"({"as_int":1})", "int[] x of the kind as_int");
  refused_as("Tensor?[]?", R"({"as_graph":{}})", "Tensor?[]? x of the kind as_graph");
  refused_as("ScalarType", R"({"as_scalar_type":14})", "ScalarType x");
  refused_as("Layout", R"({"as_layout":1})", "Layout x");
  refused_as("MemoryFormat", R"({"as_memory_format":0})", "MemoryFormat x");
  refused_as("Device", R"({"as_device":{"type":"xpu","index":0}})", "Device x");
  expect(bound(node_of(input("x", R"({"as_none":true})")), "Tensor? x").at(0).value.kind == Kind::none, "an option");
}

void defaults_take_the_place_of_arguments() {
  const auto value = [](const std::string& parameter) {
    const BoundArgument argument = bound(node_of(""), parameter).at(0);
    expect(argument.is_default, parameter);
    return argument.value;
  };
  expect(value("Tensor? x=None").kind == Kind::none, "nothing");
  expect(value("int[] x=[]").kind == Kind::integers && value("float[] x=[]").kind == Kind::reals, "no numbers");
  expect(value("bool[] x=[]").kind == Kind::booleans && value("Tensor[] x=[]").kind == Kind::tensors, "no others");
  expect(value("bool x=True").boolean && !value("bool x=False").boolean, "truth values");
  expect(value("str x='lower'").text == "lower", "a text");
  expect(value("int x=-3").number == -3 && value("float x=1e-3").real == 1e-3, "numbers");
  for (const char* parameter :
       {"int[] x=[1]", "float[] x=[1]", "bool[] x=[True]", "Tensor[] x=[0]", "str x=x", "int x=1L", "int x=y",
        "int x=99999999999999999999", "float x=y", "float x=1e-3f", "Scalar x=2", "Tensor x=None"})
    refused("the argument ", node_of(""), parameter);
  refused("the argument int[] x of the kind default [1]", node_of(""), "int[1] x=[1]");
}

void arguments_and_results_are_those_of_the_schema() {
  const OperatorNode node = node_of(input("x", R"({"as_int":1})"));
  refused("no argument y", node, "int x, int y");
  refused("the argument x", node, "");
  refused("the argument x", node, "int y=1");
  refused("results other than tensors", node, "int x", "(Tensor, Tensor)");
  for (const char* result : {"int", "Tensor[]", "Tensor?"})
    refused("results other than tensors", node, "int x", result);
  refused("results other than tensors", node_of("", R"({"as_int":{}})"), "");
}

}  // namespace

int main() {
  values_are_read();
  tensors_and_integers_of_the_run_are_counted();
  numbers_are_those_of_torch();
  malformed_lists_are_refused();
  the_source_tells_of_outputs();
  an_argument_has_the_type_of_its_parameter();
  what_no_parameter_takes_is_refused();
  defaults_take_the_place_of_arguments();
  arguments_and_results_are_those_of_the_schema();
  return 0;
}
