#include "capi/base/json_document.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capi/base/error.h"
#include "capi/base/limits.h"

namespace neml2_capi {
namespace {

using nlohmann::json;

// Why a document is not read.
class Problem final : public json::exception {
 public:
  explicit Problem(const std::string& what) : exception(0, what.c_str()) {}
};

// Returns what is beyond the limits, or an empty text. Depth and number of values follow from the punctuation outside of
// texts, whether or not the rest is JSON.
std::string excess(std::string_view text) {
  if (text.size() > limits::json_bytes)
    return join("it has ", text.size(), " bytes, expected at most ", limits::json_bytes);
  std::size_t depth = 0, values = 1;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      i += c == '\\';
      continue;
    }
    const bool opens = c == '[' || c == '{';
    depth += opens;
    depth -= depth > 0 && (c == ']' || c == '}');
    values += opens || c == ',';
    if (depth > limits::json_depth) return join("its values are nested more than ", limits::json_depth, " deep");
    if (values > limits::json_values) return join("it has more than ", limits::json_values, " values");
  }
  return "";
}

// Returns the reason of the parser, which may repeat much of the document.
std::string clipped(std::string_view reason) {
  constexpr std::size_t longest = 300;
  return std::string(reason.substr(0, longest)) + (reason.size() > longest ? "..." : "");
}

// Leaves the value without children.
void take_apart(json& value) noexcept {
  if (auto* array = value.get_ptr<json::array_t*>()) {
    for (json& child : *array) take_apart(child);
    array->clear();
  } else if (auto* object = value.get_ptr<json::object_t*>()) {
    for (auto& [key, child] : *object) take_apart(child);
    object->clear();
  }
}

}  // namespace

// Builds the tree from what the parser meets. Each value hangs in the tree before it has children.
class JsonDocument::Builder {
 public:
  explicit Builder(json& root) : root_(root) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(json::binary_t& value) { return add(std::move(value)); }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool start_object(std::size_t) { return open(json::value_t::object); }
  bool start_array(std::size_t) { return open(json::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& error) {
    throw Problem(clipped(error.what()));
  }

 private:
  // Returns where the next value stands.
  json& place() {
    if (open_.empty()) return root_;
    if (auto* array = open_.back()->get_ptr<json::array_t*>()) return array->emplace_back();
    json& member = (*open_.back()->get_ptr<json::object_t*>())[key_];  // the last one of this name counts
    take_apart(member);
    return member;
  }

  template <class Value>
  bool add(Value&& value) {
    json made(std::forward<Value>(value));
    place() = std::move(made);
    return true;
  }

  bool open(json::value_t type) {
    open_.reserve(open_.size() + 1);
    json made(type);
    json& value = place();
    value = std::move(made);
    open_.push_back(&value);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  json& root_;
  std::vector<json*> open_;
  std::string key_;
};

JsonDocument::JsonDocument(std::string_view text) {
  if (const std::string problem = excess(text); !problem.empty()) throw Problem(problem);
  Builder builder(root_);
  try {
    json::sax_parse(text.begin(), text.end(), &builder);
  } catch (...) {
    take_apart(root_);
    throw;
  }
}

JsonDocument::~JsonDocument() { take_apart(root_); }

}  // namespace neml2_capi
