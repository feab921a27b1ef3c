#include "capi/package/extern_nodes.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>

#include "capi/base/error.h"
#include "capi/package/source_text.h"

namespace neml2_capi::aoti {
namespace {

using nlohmann::json;

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

void parse_content(Argument& argument, const json& content) {
  using Kind = Argument::Kind;
  argument.kind = kind_named(argument.kind_name);
  switch (argument.kind) {
    case Kind::real: content.get_to(argument.real); break;
    case Kind::boolean: content.get_to(argument.boolean); break;
    case Kind::text: content.get_to(argument.text); break;
    case Kind::tensors:
    case Kind::integers: argument.count = std::ssize(content); break;
    case Kind::optional_tensors:
      for (const json& item : content) argument.booleans.push_back(item.contains("as_tensor"));
      argument.count = std::count(argument.booleans.begin(), argument.booleans.end(), true);
      break;
    case Kind::reals: content.get_to(argument.reals); break;
    case Kind::booleans: content.get_to(argument.booleans); break;
    case Kind::scalar_type: argument.number = torch_scalar_type(content.get<std::int64_t>()); break;
    case Kind::layout: argument.number = torch_layout(content.get<std::int64_t>()); break;
    case Kind::memory_format: argument.number = torch_memory_format(content.get<std::int64_t>()); break;
    case Kind::device:
      content.at("type").get_to(argument.text);
      argument.number = content.at("index").is_null() ? -1 : content.at("index").get<std::int64_t>();
      break;
    default: break;
  }
}

// Parses an argument, an object with one member, whose name tells the kind: {"as_tensor": {"name": "buf6"}}.
Argument parse_argument(const std::string& target, const std::string& name, const json& value) {
  Argument argument;
  argument.name = name;
  const json* member = &value;
  do {  // an optional tensor wraps a tensor, or none
    if (!member->is_object() || member->size() != 1)
      throw Error(NEML2_ERROR_ARTIFACT, "",
                  join("The package lists a malformed argument ", name, " of the operator ", target,
                       ". Compile the model again."));
    argument.kind_name = member->begin().key();
    member = &member->begin().value();
  } while (argument.kind_name == "as_optional_tensor");
  parse_content(argument, *member);
  return argument;
}

OperatorNode parse_node(const json& entry) {
  const json& node = entry.at("node");
  OperatorNode parsed;
  parsed.target = node.at("target").get<std::string>();
  for (const json& input : node.at("inputs"))
    parsed.inputs.push_back(parse_argument(parsed.target, input.at("name").get<std::string>(), input.at("arg")));
  for (const json& output : node.at("outputs")) {
    OperatorNode::Output& made = parsed.outputs.emplace_back();
    made.is_tensor = output.contains("as_tensor");
    if (made.is_tensor) made.name = output.at("as_tensor").at("name").get<std::string>();
  }
  return parsed;
}

bool is_part_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Returns how often the source reads a variable, or passes it on. Declarations and resets do not count.
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

// Reads the layout that the code after the operator relies on.
void read_layout(OperatorNode::Output& output, std::string_view source) {
  const std::size_t at = source.find(join("assert_size_stride(", output.name, ", {"));
  const auto layout = checked_layout(source.substr(std::min(at, source.size())));
  if (!layout) return;
  output.has_layout = true;
  output.sizes.assign(layout->sizes.begin(), layout->sizes.end());
  output.strides.assign(layout->strides.begin(), layout->strides.end());
}

// Returns the element type by which kernels take a variable, itself or under another name:
//   auto buf5 = std::move(buf2);  // reuse
//   cpp_fused_add_1((double*)(buf5.data_ptr()), (const bool*)(buf3.data_ptr()), s17);
std::optional<DType> dtype_in_source(const std::string& name, std::string_view source) {
  constexpr std::pair<std::string_view, DType> types[] = {
      {"double", DType::float64},   {"float", DType::float32},     {"int64_t", DType::int64},
      {"int32_t", DType::int32},    {"int16_t", DType::int16},     {"int8_t", DType::int8},
      {"uint8_t", DType::uint8},    {"bool", DType::boolean},      {"half", DType::float16},
      {"at::Half", DType::float16}, {"bfloat16", DType::bfloat16}, {"at::BFloat16", DType::bfloat16},
  };
  if (const std::size_t use = source.find(join("*)(", name, ".data_ptr())")); use != std::string_view::npos) {
    std::string_view type = source.substr(0, use);
    type = type.substr(type.rfind('(') + 1);
    if (type.starts_with("const ")) type.remove_prefix(6);
    for (const auto& [known, dtype] : types)
      if (type == known) return dtype;
    return {};
  }
  const std::size_t moved = source.find(join(" = std::move(", name, ");  // reuse"));
  if (moved == std::string_view::npos) return {};
  const std::string_view before = source.substr(0, moved);
  return dtype_in_source(std::string(before.substr(before.rfind(' ') + 1)), source.substr(moved));
}

}  // namespace

std::vector<OperatorNode> parse_extern_nodes(std::string_view text, std::string_view source) {
  std::vector<OperatorNode> nodes;
  try {
    const json document = json::parse(text);
    for (const json& entry : document.at("nodes")) nodes.push_back(parse_node(entry));
  } catch (const json::exception& error) {
    throw Error(
        NEML2_ERROR_ARTIFACT, "",
        join("The list of operators in the package is malformed: ", error.what(), ". Compile the model again."));
  }
  // The call of the operator itself mentions its outputs once.
  for (OperatorNode& node : nodes)
    for (OperatorNode::Output& output : node.outputs) {
      output.is_read = !output.is_tensor || mentions(source, output.name) != 1;
      if (!output.is_tensor) continue;
      read_layout(output, source);
      output.dtype = dtype_in_source(output.name, source);
    }
  return nodes;
}

}  // namespace neml2_capi::aoti
