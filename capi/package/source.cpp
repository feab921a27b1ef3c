#include "capi/package/source.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/limits.h"
#include "capi/package/source_outputs.h"
#include "capi/package/source_symbols.h"
#include "capi/package/source_text.h"
#include "capi/tensor/dtype_names.h"

namespace neml2_capi::aoti {
namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

DType to_dtype(std::int64_t input, std::string_view name) {
  if (const auto dtype = dtype_named(name)) return *dtype;
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The package takes input ", input, " in the element type ", name,
                   ", which is not supported. Convert it in the model, and compile it again."));
}

// Returns the device of a number of torch's C ABI.
Device::Type to_device(std::int64_t input, std::string_view type) {
  if (type == "0") return Device::Type::cpu;
  if (type == "1") return Device::Type::cuda;
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The package takes input ", input,
                   " on a device other than the CPU and CUDA. Compile the model for one of these."));
}

// Facts from the checks of one input.
struct Checks {
  std::string name;  // of the variable that holds the input
  std::optional<DType> dtype;
  Device::Type device = Device::Type::cpu;
  std::map<std::int64_t, std::int64_t> fixed, least, greatest, strides;
};

std::string name_of_input(std::int64_t input, std::string_view name) {
  if (!is_identifier(name) || name.size() > limits::source_name_characters)
    malformed_input(input, "has checks that do not name its variable");
  return std::string(name);
}

// Reads these lines:
//   ConstantHandle arg1_1 = ConstantHandle(input_handles[0]);
//   int32_t arg1_1_expected_dtype = aoti_torch_dtype_float64();
//   if (arg1_1_size[0] < 2) {
//   if (arg1_1_size[0] > 1048576) {
//   if (6 != arg1_1_size[1]) {
//   if (1 != arg1_1_stride[1]) {
//   int32_t arg1_1_expected_device_type = 0;
Checks read_checks(std::int64_t input, std::string_view body) {
  Checks checks;
  std::string dtype, device;
  Lines lines(body);
  while (const auto line = lines.next()) {
    if (line->starts_with("ConstantHandle ")) {
      checks.name = name_of_input(input, line->substr(15, line->find(' ', 15) - 15));
      dtype = "int32_t " + checks.name + "_expected_dtype = aoti_torch_dtype_";
      device = "int32_t " + checks.name + "_expected_device_type = ";
    }
    if (checks.name.empty()) continue;
    if (const auto name = between(*line, dtype, "();")) checks.dtype = to_dtype(input, *name);
    if (const auto type = between(*line, device, ";")) checks.device = to_device(input, *type);

    const auto condition = between(*line, "if (", ") {");
    if (!condition) continue;
    const std::size_t first = condition->find(' ');
    const std::size_t second = condition->rfind(' ');
    if (first == std::string_view::npos || second <= first) continue;
    const std::string_view left = condition->substr(0, first), right = condition->substr(second + 1);
    const std::string_view comparison = condition->substr(first + 1, second - first - 1);
    const auto number = to_integer(comparison == "!=" ? left : right);
    const auto element = to_element(comparison == "!=" ? right : left);
    if (!number || !element) continue;
    const bool is_size = element->array == checks.name + "_size";
    if (is_size && comparison == "!=") checks.fixed[element->index] = *number;
    if (is_size && comparison == "<") checks.least[element->index] = *number;
    if (is_size && comparison == ">") checks.greatest[element->index] = *number;
    if (element->array == checks.name + "_stride" && comparison == "!=") checks.strides[element->index] = *number;
  }
  if (checks.name.empty()) malformed_input(input, "has checks that do not name its variable");
  if (!checks.dtype) malformed_input(input, "has checks that do not state its element type");
  return checks;
}

InputSpec to_spec(std::int64_t input, const Checks& checks) {
  std::int64_t ndim = 0;
  for (const auto* stated : {&checks.fixed, &checks.least, &checks.greatest, &checks.strides})
    if (!stated->empty()) ndim = std::max(ndim, stated->rbegin()->first + 1);

  const auto lookup = [](const auto& map, std::int64_t key, std::int64_t otherwise) {
    const auto found = map.find(key);
    return found == map.end() ? otherwise : found->second;
  };
  InputSpec spec;
  spec.name = checks.name;
  spec.dtype = *checks.dtype;
  for (std::int64_t axis = 0; axis < ndim; ++axis) {
    const std::int64_t least = lookup(checks.fixed, axis, lookup(checks.least, axis, 0));
    const std::int64_t greatest = lookup(checks.fixed, axis, lookup(checks.greatest, axis, unbounded));
    if (least < 0 || greatest < least) malformed_input(input, join("has impossible bounds of axis ", axis));
    spec.least.push_back(least);
    spec.greatest.push_back(greatest);
  }
  return spec;
}

// Returns the axes from the outermost to the innermost one, as the kernels expect the elements to lie side by side:
// row-major, or in the order of the stated strides. These are numbers if all inner axes are fixed.
Dims order_of(std::int64_t input, const InputSpec& spec, const Checks& checks) {
  constexpr std::int64_t unstated = std::numeric_limits<std::int64_t>::max();
  const auto has_one_element = [&](std::int64_t axis) { return spec.is_fixed(axis) && spec.least[axis] <= 1; };
  const auto stride_of = [&](std::int64_t axis) {
    const auto found = checks.strides.find(axis);
    return found == checks.strides.end() ? unstated : found->second;
  };
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < spec.least.size(); ++axis)
    if (!has_one_element(axis)) axes.push_back(axis);
  std::stable_sort(axes.begin(), axes.end(), [&](auto a, auto b) { return stride_of(a) > stride_of(b); });
  std::int64_t expected = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (stride_of(*axis) != expected)
      throw Error(NEML2_ERROR_UNSUPPORTED, "",
                  join("The package takes input ", input,
                       " with gaps between its elements. Compile it with contiguous example inputs."));
    if (!spec.is_fixed(*axis)) expected = unstated;
    if (expected != unstated &&
        __builtin_mul_overflow(expected, std::max<std::int64_t>(spec.least[*axis], 1), &expected))
      malformed_input(input, "is too large");
  }
  // Axes of one element may stand anywhere. They go where they keep the order row-major, if possible.
  for (std::int64_t axis = 0; axis < spec.least.size(); ++axis)
    if (has_one_element(axis))
      axes.insert(std::find_if(axes.begin(), axes.end(), [&](auto other) { return other > axis; }), axis);
  return Dims(std::span<const std::int64_t>(axes));
}

// Reads "AOTInductorModelBase(2," and, on the next line, "1,": the numbers of inputs and outputs.
std::pair<std::int64_t, std::int64_t> read_arity(std::string_view source) {
  constexpr std::string_view mark = ": AOTInductorModelBase(";
  const std::size_t at = source.find(mark);
  if (at == std::string_view::npos) malformed_source("it does not state the numbers of inputs and outputs");
  std::string_view rest = source.substr(at + mark.size());
  std::int64_t numbers[2];
  for (std::int64_t& number : numbers) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size()));
    const std::size_t comma = rest.find(',');
    const auto value = to_integer(rest.substr(0, comma));
    if (!value || *value < 0 || comma == std::string_view::npos)
      malformed_source("it does not state the numbers of inputs and outputs");
    if (*value > limits::package_tensors)
      malformed_source(join("it has ", *value, " inputs or outputs, expected at most ", limits::package_tensors));
    number = *value;
    rest.remove_prefix(comma + 1);
  }
  return {numbers[0], numbers[1]};
}

// Declaration of a kernel, with the element types that it reads and writes:
//   extern "C"  void  cpp_fused_floor_divide_0(const int64_t* in_ptr0,
//                          int64_t* out_ptr0,
//                          const int64_t ks0);
constexpr std::string_view kernel_mark = "extern \"C\"  void  ";

bool has_integer_kernels(std::string_view source) {
  for (std::size_t at = source.find(kernel_mark); at != std::string_view::npos; at = source.find(kernel_mark, at + 1)) {
    const std::size_t end = std::min(source.find(';', at), source.size());
    if (source.substr(at, end - at).find("_t* ") != std::string_view::npos) return true;
    at = end;
  }
  return false;
}

// Returns the bodies of the functions that check the inputs, by the numbers of these.
std::map<std::int64_t, std::string_view> read_check_functions(std::string_view source) {
  std::map<std::int64_t, std::string_view> bodies;
  std::string_view* last = nullptr;
  each_numbered(source, "static void check_input_", [&](std::int64_t input, std::string_view rest) {
    if (last) *last = last->substr(0, last->size() - rest.size());  // no body has a part of another
    last = bodies.try_emplace(input, rest).second ? &bodies[input] : nullptr;
  });
  for (auto& [input, body] : bodies) {
    const std::size_t end = body.starts_with("(") ? body.find("\n}") : 0;
    body = body.substr(0, end == std::string_view::npos ? 0 : end);
  }
  return bodies;
}

// Returns the text that the constructor gives to a member, or an empty one:
//   in_spec_ = R"([1, {"type": "builtins.tuple", ... }])";
std::string read_text(std::string_view source, std::string_view member) {
  const std::string mark = join("    ", member, " = R\"(");
  const std::size_t constructor = source.find("AOTInductorModel::AOTInductorModel(");
  const std::size_t at = source.find(mark, constructor == std::string_view::npos ? 0 : constructor);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = source.substr(at + mark.size());
  const std::size_t end = rest.find(")\";\n");
  return end == std::string_view::npos ? "" : std::string(rest.substr(0, end));
}

}  // namespace

Signature read_signature(std::string_view source) {
  if (source.size() > limits::source_bytes)
    malformed_source(join("it has ", source.size(), " bytes, expected at most ", limits::source_bytes));
  const auto [num_inputs, num_outputs] = read_arity(source);
  Signature signature;
  std::vector<Checks> checks;
  const auto bodies = read_check_functions(source);
  for (std::int64_t i = 0; i < num_inputs; ++i) {
    const auto body = bodies.find(i);
    if (body == bodies.end() || body->second.empty()) malformed_input(i, "has no checks");
    checks.push_back(read_checks(i, body->second));
    signature.inputs.push_back(to_spec(i, checks.back()));
    signature.inputs.back().order = order_of(i, signature.inputs.back(), checks.back());
    if (i > 0 && checks.back().device != signature.device)
      throw Error(NEML2_ERROR_UNSUPPORTED, "",
                  join("The package takes input ", i,
                       " on another device than those before it. Compile the model with all inputs on one device."));
    signature.device = checks.back().device;
  }
  const auto run = body_of(source, "void AOTInductorModel::run_impl(");
  if (!run) malformed_source("it has no run_impl");
  signature.outputs = read_outputs(source, *run, num_outputs, signature.inputs);
  signature.call_spec = {read_text(source, "in_spec_"), read_text(source, "out_spec_")};
  SizeSymbols symbols = read_symbols(*run, signature.inputs);
  signature.equal_axes = std::move(symbols.equal_axes);
  signature.symbols = std::move(symbols.axes);
  signature.has_kernels = source.find(kernel_mark) != std::string_view::npos;
  signature.has_integer_kernels = has_integer_kernels(source);
  return signature;
}

}  // namespace neml2_capi::aoti
