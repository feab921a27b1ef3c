#include "capi/base/json_document.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "capi/base/error.h"
#include "capi/base/limits.h"

namespace neml2_capi {
namespace {

using nlohmann::json;

const json& value_of(const void* value) { return *static_cast<const json*>(value); }

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

// Builds the tree from what the parser meets. Each value hangs in the tree before it has children.
class Builder {
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
    throw JsonError(clipped(error.what()));
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

}  // namespace

struct JsonDocument::Tree {
  json root;

  ~Tree() { take_apart(root); }
};

JsonDocument::JsonDocument(std::string_view text) {
  if (const std::string problem = excess(text); !problem.empty()) throw JsonError(problem);
  tree_ = std::make_unique<Tree>();
  Builder builder(tree_->root);
  json::sax_parse(text.begin(), text.end(), &builder);
}

JsonDocument::~JsonDocument() = default;

Json JsonDocument::root() const { return Json(&tree_->root); }

bool Json::is_null() const noexcept { return value_of(value_).is_null(); }
bool Json::is_object() const noexcept { return value_of(value_).is_object(); }
bool Json::is_list() const noexcept { return value_of(value_).is_array(); }
bool Json::is_text() const noexcept { return value_of(value_).is_string(); }
bool Json::is_boolean() const noexcept { return value_of(value_).is_boolean(); }
bool Json::is_number() const noexcept { return value_of(value_).is_number(); }
bool Json::is_integer() const noexcept { return value_of(value_).is_number_integer(); }
const char* Json::type_name() const noexcept { return value_of(value_).type_name(); }
std::string Json::dump() const { return value_of(value_).dump(); }

Json Json::require(bool holds, const char* expected) const {
  if (!holds) throw JsonError(join("expected ", expected, ", found ", type_name()));
  return *this;
}

std::optional<Json> Json::find(const std::string& key) const {
  const auto* object = value_of(value_).get_ptr<const json::object_t*>();
  if (!object) return std::nullopt;
  const auto found = object->find(key);
  if (found == object->end()) return std::nullopt;
  return Json(&found->second);
}

Json Json::at(const std::string& key) const {
  const std::optional<Json> found = find(key);
  if (!found) throw JsonError(join("expected a member '", key, "' of an object"));
  return *found;
}

Json Json::at(std::size_t index) const {
  const auto* list = value_of(value_).get_ptr<const json::array_t*>();
  if (!list || index >= list->size()) throw JsonError(join("expected a list of more than ", index, " values"));
  return Json(&(*list)[index]);
}

std::vector<std::pair<std::string, Json>> Json::members() const {
  require(is_object(), "an object");
  std::vector<std::pair<std::string, Json>> members;
  for (const auto& [key, value] : *value_of(value_).get_ptr<const json::object_t*>())
    members.emplace_back(key, Json(&value));
  return members;
}

std::vector<Json> Json::elements() const {
  require(is_list(), "a list");
  std::vector<Json> elements;
  for (const json& value : *value_of(value_).get_ptr<const json::array_t*>()) elements.push_back(Json(&value));
  return elements;
}

std::string Json::text() const { return value_of(require(is_text(), "a text").value_).get<std::string>(); }
double Json::number() const { return value_of(require(is_number(), "a number").value_).get<double>(); }
bool Json::boolean() const { return value_of(require(is_boolean(), "true or false").value_).get<bool>(); }

std::int64_t Json::integer() const {
  const json& value = value_of(require(is_integer(), "an integer").value_);
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw JsonError(value.dump() + " is too large");
  return value.get<std::int64_t>();
}

std::vector<std::string> Json::texts() const {
  std::vector<std::string> texts;
  for (const Json& element : elements()) texts.push_back(element.text());
  return texts;
}

std::vector<double> Json::numbers() const {
  std::vector<double> numbers;
  for (const Json& element : elements()) numbers.push_back(element.number());
  return numbers;
}

std::string quoted(std::string_view text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

bool is_utf8(std::string_view text) {
  try {
    json(text).dump();
  } catch (const json::type_error&) {
    return false;
  }
  return true;
}

}  // namespace neml2_capi
