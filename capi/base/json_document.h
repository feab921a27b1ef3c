// JSON documents of untrusted files. Their trees are nlohmann/json's, whose header this one keeps to itself:
// a file that includes it takes two seconds longer to compile. To destroy a value with children takes memory there, and ends
// the process if there is none: a document takes its tree apart from the leaves on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neml2_capi {

// Thrown for a text that is not JSON, and for a value of another type than asked for.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Value of a document, which must outlive it.
class Json {
 public:
  bool is_null() const noexcept;
  bool is_object() const noexcept;
  bool is_list() const noexcept;
  bool is_text() const noexcept;
  bool is_boolean() const noexcept;
  bool is_number() const noexcept;
  bool is_integer() const noexcept;
  // Returns "object", "string", ...
  const char* type_name() const noexcept;
  // Returns the value as a text in JSON.
  std::string dump() const;

  // Returns a member of an object; nullopt if there is none, or this is no object.
  std::optional<Json> find(const std::string& key) const;
  // Returns a member of an object, or an element of a list. Throws if there is none, as all functions below do.
  Json at(const std::string& key) const;
  Json at(std::size_t index) const;
  std::vector<std::pair<std::string, Json>> members() const;
  std::vector<Json> elements() const;

  std::string text() const;
  std::int64_t integer() const;
  double number() const;
  bool boolean() const;
  std::vector<std::string> texts() const;
  std::vector<double> numbers() const;

 private:
  friend class JsonDocument;
  explicit Json(const void* value) : value_(value) {}
  Json require(bool holds, const char* expected) const;

  const void* value_;
};

class JsonDocument {
 public:
  // Throws JsonError if the text is not JSON, or is beyond the limits of JSON (bytes, depth, number of values), which
  // are compared first. So functions that call themselves may walk the tree.
  explicit JsonDocument(std::string_view text);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  Json root() const;

 private:
  struct Tree;
  std::unique_ptr<Tree> tree_;
};

// Returns a text in quotes, as JSON has it; bytes that are not UTF-8 are replaced.
std::string quoted(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace neml2_capi
