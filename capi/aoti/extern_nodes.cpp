#include "capi/aoti/extern_nodes.h"

#include <cctype>
#include <nlohmann/json.hpp>

#include "capi/error.h"

namespace neml2_capi::aoti {
namespace {

using builtin::Argument;
using nlohmann::json;

// An argument is an object with one member, whose name says the kind: {"as_tensor": {"name": "buf6"}}.
Argument parse_argument(const std::string& target, const std::string& name, const json& value) {
  const json* member = &value;
  std::string kind;
  do {  // an optional tensor wraps a tensor, or none
    if (!member->is_object() || member->size() != 1)
      throw Error(NEML2_ERROR_ARTIFACT, "", join("the argument ", name, " of the operator ", target, " is malformed"));
    kind = member->begin().key();
    member = &member->begin().value();
  } while (kind == "as_optional_tensor");
  const json& content = *member;

  Argument argument;
  argument.name = name;
  if (kind == "as_tensor") {
    argument.kind = Argument::Kind::tensor;
  } else if (kind == "as_int" || kind == "as_sym_int") {
    argument.kind = Argument::Kind::integer;
  } else if (kind == "as_float") {
    argument.kind = Argument::Kind::real;
    argument.real = content.get<double>();
  } else if (kind == "as_bool") {
    argument.kind = Argument::Kind::boolean;
    argument.boolean = content.get<bool>();
  } else if (kind == "as_string") {
    argument.kind = Argument::Kind::text;
    argument.text = content.get<std::string>();
  } else if (kind != "as_none") {
    throw Error(NEML2_ERROR_UNSUPPORTED, "",
                join("the package calls the operator ", target, " with the argument ", name, " of the kind ", kind,
                     ", which the built-in runtime does not know: write the model without it"));
  }
  return argument;
}

builtin::OperatorNode parse_node(const json& entry) {
  const json& node = entry.at("node");
  builtin::OperatorNode parsed;
  parsed.target = node.at("target").get<std::string>();
  for (const json& input : node.at("inputs"))
    parsed.inputs.push_back(parse_argument(parsed.target, input.at("name").get<std::string>(), input.at("arg")));
  for (const json& output : node.at("outputs")) {
    if (!output.contains("as_tensor"))
      throw Error(NEML2_ERROR_UNSUPPORTED, "",
                  join("the package calls the operator ", parsed.target,
                       ", which returns something other than tensors: write the model without it"));
    parsed.outputs.push_back({output.at("as_tensor").at("name").get<std::string>()});
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
    for (builtin::OperatorNode::Output& output : node.outputs) output.is_read = mentions(source, output.name) != 1;
  return nodes;
}

}  // namespace neml2_capi::aoti
