#include "capi/aoti/extern_nodes.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>

#include "capi/error.h"

namespace neml2_capi::aoti {
namespace {

using builtin::Argument;
using nlohmann::json;

// torch.export numbers element types, layouts and memory formats its own way.
std::int64_t torch_scalar_type(std::int64_t exported) {
  constexpr std::int64_t bfloat16 = 13, in_torch = 15;
  return exported == bfloat16 ? in_torch : exported < bfloat16 ? exported - 1 : -1;
}

std::int64_t torch_layout(std::int64_t exported) {
  constexpr std::int64_t strided = 7;
  return exported == strided ? 0 : -1;
}

std::int64_t torch_memory_format(std::int64_t exported) {
  constexpr std::int64_t in_torch[] = {-1, 0, 2, 3, 1};  // unknown, contiguous, channels last, its 3-d form, preserved
  return 0 < exported && exported < std::ssize(in_torch) ? in_torch[exported] : -1;
}

void parse_content(Argument& argument, const json& content) {
  using Kind = Argument::Kind;
  const std::string& kind = argument.kind_name;
  const auto is_list_of = [&](const char* singular) { return kind == join(singular, "s"); };
  if (kind == "as_tensor") {
    argument.kind = Kind::tensor;
  } else if (kind == "as_int" || kind == "as_sym_int") {
    argument.kind = Kind::integer;
  } else if (kind == "as_float") {
    argument.kind = Kind::real;
    argument.real = content.get<double>();
  } else if (kind == "as_bool") {
    argument.kind = Kind::boolean;
    argument.boolean = content.get<bool>();
  } else if (kind == "as_string") {
    argument.kind = Kind::text;
    argument.text = content.get<std::string>();
  } else if (is_list_of("as_tensor")) {
    argument.kind = Kind::tensors;
    argument.count = std::ssize(content);
  } else if (is_list_of("as_optional_tensor")) {
    argument.kind = Kind::optional_tensors;
    for (const json& item : content) argument.booleans.push_back(item.contains("as_tensor"));
    argument.count = std::count(argument.booleans.begin(), argument.booleans.end(), true);
  } else if (is_list_of("as_int") || is_list_of("as_sym_int")) {
    argument.kind = Kind::integers;
    argument.count = std::ssize(content);
  } else if (is_list_of("as_float")) {
    argument.kind = Kind::reals;
    argument.reals = content.get<std::vector<double>>();
  } else if (is_list_of("as_bool")) {
    argument.kind = Kind::booleans;
    argument.booleans = content.get<std::vector<bool>>();
  } else if (kind == "as_scalar_type") {
    argument.kind = Kind::scalar_type;
    argument.number = torch_scalar_type(content.get<std::int64_t>());
  } else if (kind == "as_layout") {
    argument.kind = Kind::layout;
    argument.number = torch_layout(content.get<std::int64_t>());
  } else if (kind == "as_memory_format") {
    argument.kind = Kind::memory_format;
    argument.number = torch_memory_format(content.get<std::int64_t>());
  } else if (kind == "as_device") {
    argument.kind = Kind::device;
    argument.text = content.at("type").get<std::string>();
    argument.number = content.at("index").is_null() ? -1 : content.at("index").get<std::int64_t>();
  } else if (kind != "as_none") {
    argument.kind = Kind::unknown;
  }
}

// An argument is an object with one member, whose name says the kind: {"as_tensor": {"name": "buf6"}}.
Argument parse_argument(const std::string& target, const std::string& name, const json& value) {
  Argument argument;
  argument.name = name;
  const json* member = &value;
  do {  // an optional tensor wraps a tensor, or none
    if (!member->is_object() || member->size() != 1)
      throw Error(NEML2_ERROR_ARTIFACT, "", join("the argument ", name, " of the operator ", target, " is malformed"));
    argument.kind_name = member->begin().key();
    member = &member->begin().value();
  } while (argument.kind_name == "as_optional_tensor");
  parse_content(argument, *member);
  return argument;
}

builtin::OperatorNode parse_node(const json& entry) {
  const json& node = entry.at("node");
  builtin::OperatorNode parsed;
  parsed.target = node.at("target").get<std::string>();
  for (const json& input : node.at("inputs"))
    parsed.inputs.push_back(parse_argument(parsed.target, input.at("name").get<std::string>(), input.at("arg")));
  for (const json& output : node.at("outputs")) {
    builtin::OperatorNode::Output& made = parsed.outputs.emplace_back();
    made.is_tensor = output.contains("as_tensor");
    if (made.is_tensor) made.name = output.at("as_tensor").at("name").get<std::string>();
  }
  return parsed;
}

bool is_part_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// How often the source reads a variable, or passes it on; to declare or to reset it is neither.
std::int64_t mentions(std::string_view source, std::string_view name) {
  const std::string declaration = join("(", name, "_handle)");
  std::int64_t count = 0;
  for (std::size_t at = source.find(name); at != std::string_view::npos; at = source.find(name, at + 1)) {
    const std::string_view after = source.substr(at + name.size());
    const bool is_whole =
        (at == 0 || !is_part_of_a_name(source[at - 1])) && (after.empty() || !is_part_of_a_name(after.front()));
    const bool is_declared = after.starts_with(declaration);
    count += is_whole && !is_declared && !after.starts_with(".reset()");
  }
  return count;
}

}  // namespace

std::vector<builtin::OperatorNode> parse_extern_nodes(std::string_view text, std::string_view source) {
  std::vector<builtin::OperatorNode> nodes;
  try {
    const json document = json::parse(text);
    for (const json& entry : document.at("nodes")) nodes.push_back(parse_node(entry));
  } catch (const json::exception& error) {
    throw Error(NEML2_ERROR_ARTIFACT, "", join("the list of operators in the package is malformed: ", error.what()));
  }
  // The call of the operator itself mentions its outputs once.
  for (builtin::OperatorNode& node : nodes)
    for (builtin::OperatorNode::Output& output : node.outputs)
      output.is_read = !output.is_tensor || mentions(source, output.name) != 1;
  return nodes;
}

}  // namespace neml2_capi::aoti
