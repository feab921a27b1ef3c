#include "capi/package/extern_nodes.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "capi/base/error.h"
#include "capi/base/json_document.h"
#include "capi/base/limits.h"
#include "capi/package/source_text.h"
#include "capi/package/source_uses.h"

namespace neml2_capi::aoti {
namespace {

// Returns torch's number of an element type. torch.export numbers element types, layouts and memory formats otherwise.
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

Argument::Kind kind_named(std::string_view name) {
  using Kind = Argument::Kind;
  constexpr std::pair<std::string_view, Kind> kinds[] = {
      {"as_tensor", Kind::tensor},
      {"as_int", Kind::integer},
      {"as_sym_int", Kind::integer},
      {"as_float", Kind::real},
      {"as_bool", Kind::boolean},
      {"as_string", Kind::text},
      {"as_none", Kind::none},
      {"as_tensors", Kind::tensors},
      {"as_optional_tensors", Kind::optional_tensors},
      {"as_ints", Kind::integers},
      {"as_sym_ints", Kind::integers},
      {"as_floats", Kind::reals},
      {"as_bools", Kind::booleans},
      {"as_scalar_type", Kind::scalar_type},
      {"as_layout", Kind::layout},
      {"as_memory_format", Kind::memory_format},
      {"as_device", Kind::device},
  };
  for (const auto& [known, kind] : kinds)
    if (name == known) return kind;
  return Kind::unknown;
}

void parse_content(Argument& argument, const Json& content) {
  using Kind = Argument::Kind;
  argument.kind = kind_named(argument.kind_name);
  switch (argument.kind) {
    case Kind::real: argument.real = content.number(); break;
    case Kind::boolean: argument.boolean = content.boolean(); break;
    case Kind::text: argument.text = content.text(); break;
    case Kind::tensors:
    case Kind::integers: argument.count = std::ssize(content.elements()); break;
    case Kind::optional_tensors:
      for (const Json& item : content.elements()) argument.booleans.push_back(item.find("as_tensor").has_value());
      argument.count = std::count(argument.booleans.begin(), argument.booleans.end(), true);
      break;
    case Kind::reals: argument.reals = content.numbers(); break;
    case Kind::booleans:
      for (const Json& item : content.elements()) argument.booleans.push_back(item.boolean());
      break;
    case Kind::scalar_type: argument.number = torch_scalar_type(content.integer()); break;
    case Kind::layout: argument.number = torch_layout(content.integer()); break;
    case Kind::memory_format: argument.number = torch_memory_format(content.integer()); break;
    case Kind::device:
      argument.text = content.at("type").text();
      argument.number = content.at("index").is_null() ? -1 : content.at("index").integer();
      break;
    default: break;
  }
}

// Parses an argument, an object with one member, whose name tells the kind: {"as_tensor": {"name": "buf6"}}.
Argument parse_argument(const std::string& target, const std::string& name, const Json& value) {
  Argument argument;
  argument.name = name;
  Json content = value;
  do {  // an optional tensor wraps a tensor, or none
    const auto members = content.is_object() ? content.members() : std::vector<std::pair<std::string, Json>>();
    if (members.size() != 1)
      throw Error(NEML2_ERROR_ARTIFACT, "",
                  join("The package lists a malformed argument ", name, " of the operator ", target,
                       ". Compile the model again."));
    std::tie(argument.kind_name, content) = members.front();
  } while (argument.kind_name == "as_optional_tensor");
  parse_content(argument, content);
  return argument;
}

OperatorNode parse_node(const Json& entry) {
  const Json node = entry.at("node");
  OperatorNode parsed;
  parsed.target = node.at("target").text();
  for (const Json& input : node.at("inputs").elements())
    parsed.inputs.push_back(parse_argument(parsed.target, input.at("name").text(), input.at("arg")));
  for (const Json& output : node.at("outputs").elements()) {
    OperatorNode::Output& made = parsed.outputs.emplace_back();
    const auto tensor = output.find("as_tensor");
    made.is_tensor = tensor.has_value();
    if (tensor) made.name = tensor->at("name").text();
  }
  return parsed;
}

[[noreturn]] void malformed(const std::string& what) {
  throw Error(NEML2_ERROR_ARTIFACT, "",
              join("The list of operators in the package is malformed: ", what, ". Compile the model again."));
}

void require_sensible(const std::vector<OperatorNode>& nodes, std::size_t outputs) {
  if (nodes.size() > limits::operators || outputs > limits::operator_outputs)
    malformed(
        join("it has too many; expected at most ", limits::operators, " with ", limits::operator_outputs, " outputs"));
}

// Sets the layout that the code after the operator relies on: `text` begins with its check.
void set_layout(OperatorNode::Output& output, std::string_view text) {
  const auto layout = checked_layout(text.substr(0, text.find('\n')));
  if (!layout) return;
  for (const auto* lengths : {&layout->sizes, &layout->strides}) {
    if (std::ssize(*lengths) > Dims::capacity)
      malformed(join("the source checks ", lengths->size(), " axes of ", output.name));
    for (const std::string_view length : *lengths)
      if (length.size() > limits::source_name_characters)
        malformed(join("the source has a size of ", length.size(), " characters for ", output.name));
  }
  output.has_layout = true;
  output.sizes.assign(layout->sizes.begin(), layout->sizes.end());
  output.strides.assign(layout->strides.begin(), layout->strides.end());
}

// Sets what the source tells of the outputs. The call of an operator itself mentions each once.
void read_outputs_in(std::vector<OperatorNode>& nodes, std::string_view source) {
  VariableUses uses;
  for (const OperatorNode& node : nodes)
    for (const OperatorNode::Output& output : node.outputs)
      if (output.is_tensor && output.name.size() <= limits::source_name_characters) uses[output.name];
  read_uses(uses, source);
  constexpr std::string_view mark = "assert_size_stride(";
  for (OperatorNode& node : nodes)
    for (OperatorNode::Output& output : node.outputs) {
      const auto found = uses.find(output.name);
      if (!output.is_tensor || found == uses.end()) continue;
      const VariableUse& use = found->second;
      output.is_read = use.mentions != 1;
      output.dtype = use.dtype;
      if (use.layout) set_layout(output, source.substr(*use.layout - mark.size()));
    }
}

}  // namespace

std::vector<OperatorNode> parse_extern_nodes(std::string_view text, std::string_view source) {
  std::vector<OperatorNode> nodes;
  try {
    const JsonDocument document(text);
    std::size_t outputs = 0;
    for (const Json& entry : document.root().at("nodes").elements()) {
      outputs += nodes.emplace_back(parse_node(entry)).outputs.size();
      require_sensible(nodes, outputs);
    }
  } catch (const JsonError& error) {
    malformed(error.what());
  }
  read_outputs_in(nodes, source);
  return nodes;
}

}  // namespace neml2_capi::aoti
