#include "capi/package/bound_arguments.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "capi/base/error.h"

namespace neml2_capi::aoti {
namespace {

using Kind = Argument::Kind;

// Returns a type as the schema writes it: "Tensor?[]".
std::string text_of(const Type& type) {
  return type.base + (type.optional_items ? "?" : "") + (type.is_list ? "[]" : "") + (type.is_optional ? "?" : "");
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Parses a default as the schema writes it. The kind is unknown for any other text.
Argument parse_default(const Parameter& parameter) {
  Argument value;
  value.name = parameter.name;
  value.kind_name = "default " + *parameter.otherwise;
  value.kind = Kind::unknown;
  const std::string_view text = *parameter.otherwise;
  const Type& type = parameter.type;
  if (text == "None") {
    value.kind = Kind::none;
  } else if (type.is_list) {
    if (text == "[]" && type.base == "int") value.kind = Kind::integers;
    if (text == "[]" && type.base == "float") value.kind = Kind::reals;
    if (text == "[]" && type.base == "bool") value.kind = Kind::booleans;
    if (text == "[]" && type.base == "Tensor") value.kind = Kind::tensors;
  } else if (text == "True" || text == "False") {
    value.kind = Kind::boolean;
    value.boolean = text == "True";
  } else if (type.base == "str" && text.size() >= 2) {
    value.kind = Kind::text;
    value.text = text.substr(1, text.size() - 2);
  } else if (type.base == "int" && read(text, value.number)) {
    value.kind = Kind::integer;
  } else if (type.base == "float" && read(text, value.real)) {
    value.kind = Kind::real;
  }
  return value;
}

bool fits(const Type& type, const Argument& value) {
  const auto is = [&](const char* base, bool list) { return type.base == base && type.is_list == list; };
  switch (value.kind) {
    case Kind::none: return type.is_optional;
    case Kind::tensor: return is("Tensor", false);
    case Kind::tensors:
    case Kind::optional_tensors: return is("Tensor", true);
    case Kind::integer: return is("int", false);
    case Kind::integers: return is("int", true);
    case Kind::real: return is("float", false);
    case Kind::reals: return is("float", true);
    case Kind::boolean: return is("bool", false);
    case Kind::booleans: return is("bool", true);
    case Kind::text: return is("str", false);
    case Kind::scalar_type: return is("ScalarType", false) && value.number >= 0;
    case Kind::layout: return is("Layout", false) && value.number >= 0;
    case Kind::memory_format: return is("MemoryFormat", false) && value.number >= 0;
    case Kind::device: return is("Device", false) && (value.text == "cpu" || value.text == "cuda");
    case Kind::unknown: break;
  }
  return false;
}

}  // namespace

std::vector<BoundArgument> bind_arguments(const OperatorNode& node, const OperatorSchema& schema, const char* problem) {
  const auto refuse = [&](const std::string& what) {
    throw Error(NEML2_ERROR_UNSUPPORTED, "",
                join("The package calls the operator ", node.target, " with ", what, ", which ", problem));
  };
  std::vector<BoundArgument> bound;
  for (const Parameter& parameter : schema.parameters) {
    BoundArgument& argument = bound.emplace_back();
    argument.type = parameter.type;
    const auto given = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](const Argument& each) { return each.name == parameter.name; });
    argument.is_default = given == node.inputs.end();
    if (!argument.is_default)
      argument.value = *given;
    else if (parameter.otherwise)
      argument.value = parse_default(parameter);
    else
      refuse("no argument " + parameter.name);
    if (!fits(argument.type, argument.value))
      refuse(join("the argument ", text_of(argument.type), " ", parameter.name, " of the kind ",
                  argument.value.kind_name));
  }
  for (const Argument& argument : node.inputs) {
    const auto is_this = [&](const Parameter& parameter) { return parameter.name == argument.name; };
    if (std::none_of(schema.parameters.begin(), schema.parameters.end(), is_this))
      refuse("the argument " + argument.name);
  }
  if (node.outputs.size() != schema.returns.size() ||
      !std::all_of(schema.returns.begin(), schema.returns.end(), [](const Type& type) { return type.is_tensor(); }) ||
      !std::all_of(node.outputs.begin(), node.outputs.end(), [](const auto& output) { return output.is_tensor; }))
    refuse("results other than tensors");
  return bound;
}

}  // namespace neml2_capi::aoti
