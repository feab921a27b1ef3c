#include "capi/package/source_uses.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <utility>

namespace neml2_capi::aoti {
namespace {

// Returns the element type of a pointer in C++: "const double" of (const double*)(buf5.data_ptr()).
std::optional<DType> dtype_of_pointer(std::string_view type) {
  constexpr std::pair<std::string_view, DType> types[] = {
      {"double", DType::float64},   {"float", DType::float32},     {"int64_t", DType::int64},
      {"int32_t", DType::int32},    {"int16_t", DType::int16},     {"int8_t", DType::int8},
      {"uint8_t", DType::uint8},    {"bool", DType::boolean},      {"half", DType::float16},
      {"at::Half", DType::float16}, {"bfloat16", DType::bfloat16}, {"at::BFloat16", DType::bfloat16},
  };
  if (type.starts_with("const ")) type.remove_prefix(6);
  for (const auto& [known, dtype] : types)
    if (type == known) return dtype;
  return std::nullopt;
}

bool is_part_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Place where a kernel takes a variable, or where another variable takes its tensor over.
struct Event {
  std::string_view name;
  std::string_view successor;  // empty for a kernel
  std::optional<DType> dtype;
};

// Reads the uses of `name`, which stands between `before` and `after`.
class Place {
 public:
  Place(std::string_view source, std::size_t begin, std::size_t end)
      : before_(source.substr(0, begin)), name_(source.substr(begin, end - begin)), after_(source.substr(end)) {}

  bool is_mention() const {
    if (after_.starts_with(".reset()")) return false;
    constexpr std::string_view end = "_handle)";  // a declaration: buf2(buf2_handle)
    return !(after_.starts_with("(") && after_.substr(1).starts_with(name_) &&
             after_.substr(1 + name_.size()).starts_with(end));
  }
  bool is_checked() const { return before_.ends_with("assert_size_stride(") && after_.starts_with(", {"); }

  std::optional<Event> event() const {
    if (before_.ends_with("*)(") && after_.starts_with(".data_ptr())"))
      return Event{name_, {}, dtype_of_pointer(end_of(before_.substr(0, before_.size() - 3), '('))};
    constexpr std::string_view move = " = std::move(";
    if (before_.ends_with(move) && after_.starts_with(");  // reuse"))
      return Event{name_, end_of(before_.substr(0, before_.size() - move.size()), ' '), std::nullopt};
    return std::nullopt;
  }

 private:
  // Returns what follows the last `mark`, or an empty text if that is far away.
  static std::string_view end_of(std::string_view text, char mark) {
    constexpr std::size_t far = 256;
    const std::string_view near = text.substr(text.size() - std::min(text.size(), far));
    const std::size_t at = near.rfind(mark);
    return at == std::string_view::npos ? std::string_view() : near.substr(at + 1);
  }

  std::string_view before_, name_, after_;
};

}  // namespace

void read_uses(VariableUses& wanted, std::string_view source) {
  std::vector<Event> events;
  for (std::size_t begin = 0; begin < source.size();) {
    if (!is_part_of_a_name(source[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < source.size() && is_part_of_a_name(source[end])) ++end;
    const Place place(source, begin, end);
    if (const auto event = place.event()) events.push_back(*event);
    if (const auto found = wanted.find(source.substr(begin, end - begin)); found != wanted.end()) {
      found->second.mentions += place.is_mention();
      if (!found->second.layout && place.is_checked()) found->second.layout = begin;
    }
    begin = end;
  }
  // From the end on, what a variable becomes is known where it is taken over.
  std::unordered_map<std::string_view, std::optional<DType>> known;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const auto next = known.find(event->successor);
    const auto dtype = event->successor.empty() ? event->dtype : next == known.end() ? std::nullopt : next->second;
    known[event->name] = dtype;
  }
  for (auto& [name, use] : wanted)
    if (const auto found = known.find(name); found != known.end()) use.dtype = found->second;
}

}  // namespace neml2_capi::aoti
