#include "capi/package/source_outputs.h"

#include <map>
#include <optional>
#include <string>

#include "capi/base/error.h"
#include "capi/base/limits.h"
#include "capi/package/source_text.h"
#include "capi/tensor/dtype_names.h"

namespace neml2_capi::aoti {
namespace {

// Facts about a tensor of run_impl, as far as its text tells them.
struct Known {
  std::optional<DType> dtype;
  std::optional<Dims> sizes;
};

// Returns sizes such as "s35" and "6L", with -1 for each that is no number.
std::optional<Dims> to_sizes(const std::vector<std::string_view>& texts) {
  Dims sizes;
  if (std::ssize(texts) > Dims::capacity) return std::nullopt;
  for (const std::string_view text : texts) {
    const auto number = between(text, "", "L");
    sizes.push_back(number ? to_integer(*number).value_or(-1) : -1);
  }
  return sizes;
}

// Returns the arguments of `function` in a text such as "f(g(buf1, 2, int_array_0))".
std::vector<std::string_view> arguments_of(std::string_view text, std::string_view function) {
  const std::size_t at = text.find(function);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + function.size());
  return listed(text.substr(0, text.find(')')));
}

// Body of run_impl, of which these lines are read:
//   const int64_t int_array_0[] = {s35, 6L};
//   AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float64, ...,
//     &buf0_handle));                                                              (on one line)
//   auto var_0 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf1, 3, int_array_4, int_array_5, 0L));
//   auto buf3 = std::move(buf1);  // reuse
//   if (...) { assert_size_stride(buf2, {s76, 3L, 1L}, {3L, 1L, 3L}, "torch.ops.aten._linalg_solve_ex.default"); }
//   output_handles[0] = buf0.release();
class Body {
 public:
  Body(std::string_view text, const std::vector<InputSpec>& inputs, std::size_t count) : outputs_(count) {
    for (const InputSpec& input : inputs) {
      Dims sizes;
      for (std::int64_t axis = 0; axis < input.least.size(); ++axis)
        sizes.push_back(input.least[axis] == input.greatest[axis] ? input.least[axis] : -1);
      tensors_[input.name] = {input.dtype, sizes};
    }
    Lines lines(text);
    while (const auto line = lines.next()) read(*line);
  }

  const std::vector<Known>& outputs() const { return outputs_; }

 private:
  void read(std::string_view line) {
    const std::size_t comment = line.find("  // ");
    if (comment != std::string_view::npos) line = line.substr(0, comment);
    if (const std::size_t at = line.find("int64_t int_array_"); at != std::string_view::npos)
      read_sizes(line.substr(at + 8));
    else if (line.find("aoti_torch_empty_strided") != std::string_view::npos)
      read_made(line);
    else if (const auto layout = checked_layout(line))
      read_checked(*layout);
    else if (line.starts_with("auto "))
      read_renamed(line.substr(5));
    else if (const auto output = between(line, "output_handles[", ".release();"))
      read_output(*output);
  }

  void read_sizes(std::string_view text) {
    const std::size_t end = text.find("[] = {");
    if (end == std::string_view::npos || !text.ends_with("};")) return;
    sizes_[std::string(text.substr(0, end))] = to_sizes(listed(text.substr(end + 6, text.size() - end - 8)));
  }

  void read_made(std::string_view line) {
    const auto arguments = arguments_of(line, "(aoti_torch_empty_strided(");
    if (arguments.size() != 7) return;
    const auto name = between(arguments[6], "&", "_handle");
    const auto dtype = between(arguments[3], "cached_torch_dtype_", "");
    if (name && dtype) tensors_[std::string(*name)] = {dtype_named(*dtype), sizes_named(arguments[1])};
  }

  void read_checked(const CheckedLayout& layout) {
    Known& known = tensors_[std::string(layout.tensor)];
    if (!known.sizes) known.sizes = to_sizes(layout.sizes);
  }

  void read_renamed(std::string_view text) {
    const std::size_t equals = text.find(" = ");
    if (equals == std::string_view::npos) return;
    const std::string name(text.substr(0, equals));
    const std::string_view value = text.substr(equals + 3);
    const auto view = arguments_of(value, "reinterpret_tensor_wrapper(");
    if (view.size() == 5) tensors_[name] = {tensor_named(view[0]).dtype, sizes_named(view[2])};
    if (const auto other = between(value, "std::move(", ");"); other && *other != name && is_identifier(*other))
      tensors_[name] = tensor_named(*other);
  }

  // Reads "1] = buf0".
  void read_output(std::string_view text) {
    const std::size_t bracket = text.find("] = ");
    if (bracket == std::string_view::npos) return;
    const auto index = to_integer(text.substr(0, bracket));
    if (!index || *index < 0 || *index >= std::ssize(outputs_)) return;
    outputs_[static_cast<std::size_t>(*index)] = tensor_named(text.substr(bracket + 4));
  }

  Known tensor_named(std::string_view name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? Known() : found->second;
  }
  std::optional<Dims> sizes_named(std::string_view name) const {
    const auto found = sizes_.find(name);
    return found == sizes_.end() ? std::nullopt : found->second;
  }

  std::map<std::string, std::optional<Dims>, std::less<>> sizes_;
  std::map<std::string, Known, std::less<>> tensors_;
  std::vector<Known> outputs_;
};

// Reads the names of outputs:
//   outputs_info_[0].name = "output0";
std::vector<std::string> read_names(std::string_view source, std::size_t count) {
  std::vector<std::string> names(count);
  constexpr std::string_view before = "].name = \"";
  each_numbered(source, "outputs_info_[", [&](std::int64_t index, std::string_view rest) {
    if (index >= std::ssize(names) || !rest.starts_with(before)) return;
    std::string& name = names[static_cast<std::size_t>(index)];
    rest = rest.substr(before.size(), limits::name_characters);
    if (name.empty()) name = rest.substr(0, rest.find('"'));
  });
  for (std::size_t i = 0; i < count; ++i)
    if (names[i].empty()) names[i] = join("output", i);
  return names;
}

}  // namespace

std::vector<OutputSpec> read_outputs(std::string_view source, std::string_view run, std::int64_t count,
                                     const std::vector<InputSpec>& inputs) {
  std::vector<OutputSpec> outputs;
  const std::vector<std::string> names = read_names(source, static_cast<std::size_t>(count));
  const Body body(run, inputs, static_cast<std::size_t>(count));
  for (const Known& known : body.outputs()) outputs.push_back({names[outputs.size()], known.dtype, known.sizes});
  return outputs;
}

}  // namespace neml2_capi::aoti
