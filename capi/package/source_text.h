// Reader of generated source, line by line.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/base/error.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti {

// Lines of a text, without the blanks around them.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

 private:
  std::string_view rest_;
};

// Returns the text between `before` and `after` if `text` begins with the one and ends with the other, else nullopt.
inline std::optional<std::string_view> between(std::string_view text, std::string_view before, std::string_view after) {
  if (text.size() < before.size() + after.size() || !text.starts_with(before) || !text.ends_with(after))
    return std::nullopt;
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

// Splits "s17, 3L" or "s17, ".
inline std::vector<std::string_view> listed(std::string_view text) {
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(", "), text.size());
    items.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 2, text.size()));
  }
  return items;
}

// Layout of a tensor that the code checks where it was asked to:
//   if (_check...()) { assert_size_stride(buf2, {s17, 3L}, {1L, s17}, "torch.ops.mylib.scale.default"); }
struct CheckedLayout {
  std::string_view tensor;
  std::vector<std::string_view> sizes, strides;
};

// Returns the layout in the first check of a text, or nullopt.
inline std::optional<CheckedLayout> checked_layout(std::string_view text) {
  constexpr std::string_view mark = "assert_size_stride(";
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + mark.size());
  const std::size_t begin = text.find(", {"), end = text.find('}');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + 3) return std::nullopt;
  const std::string_view sizes = text.substr(begin + 3, end - begin - 3), rest = text.substr(end + 1);
  const bool has_strides = rest.starts_with(", {") && rest.find('}') != std::string_view::npos;
  return CheckedLayout{text.substr(0, begin), listed(sizes),
                       listed(has_strides ? rest.substr(3, rest.find('}') - 3) : std::string_view())};
}

inline std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

inline bool is_identifier(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Calls `visit(number, rest)` at each "<mark>7<...>", with the number, which has no sign, and the text behind it.
template <class Visit>
void each_numbered(std::string_view text, std::string_view mark, const Visit& visit) {
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1)) {
    std::string_view rest = text.substr(at + mark.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto number = to_integer(rest.substr(0, digits));
    if (number) visit(*number, rest.substr(digits));
  }
}

// Returns the body of the function whose definition contains `signature`, or nullopt. Generated functions end with a
// brace at the margin.
inline std::optional<std::string_view> body_of(std::string_view source, std::string_view signature) {
  const std::size_t begin = source.find(signature);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = source.find("\n}", begin);
  if (end == std::string_view::npos) return std::nullopt;
  return source.substr(begin, end - begin);
}

[[noreturn]] inline void malformed_source(const std::string& what) {
  throw Error(NEML2_ERROR_ARTIFACT, "",
              join("The source in the package cannot be understood: ", what, ". Compile the model again."));
}

[[noreturn]] inline void malformed_input(std::int64_t input, const std::string& what) {
  malformed_source(join("input ", input, " ", what));
}

// Element of an array in the source: "arg1_1_size[0]".
struct Element {
  std::string_view array;
  std::int64_t index;
};

inline std::optional<Element> to_element(std::string_view text) {
  const std::size_t bracket = text.find('[');
  if (bracket == std::string_view::npos || !text.ends_with(']') || !is_identifier(text.substr(0, bracket)))
    return std::nullopt;
  const auto index = to_integer(text.substr(bracket + 1, text.size() - bracket - 2));
  if (!index || *index < 0 || *index >= Dims::capacity) return std::nullopt;
  return Element{text.substr(0, bracket), *index};
}

}  // namespace neml2_capi::aoti
