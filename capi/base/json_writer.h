// Writer of JSON as text. A tree would take memory to be freed; text takes none.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace neml2_capi {

class JsonWriter {
 public:
  // Writes an object or a list, whose content `body` writes.
  template <class Body>
  void object(Body&& body) {
    open('{');
    body();
    close('}');
  }
  template <class Body>
  void list(Body&& body) {
    open('[');
    body();
    close(']');
  }

  // Writes a member of an object.
  template <class Value>
  void member(std::string_view name, const Value& item) {
    key(name);
    value(item);
  }
  template <class Body>
  void object(std::string_view name, Body&& body) {
    key(name);
    object(body);
  }

  // Writes a text, a number, a list of values, a map of texts to values, an optional value, or what a function
  // write_json(JsonWriter&, const Value&) writes, which stands beside the type. What is not a finite number is null, and
  // bytes that are not UTF-8 are replaced.
  template <class Value>
  void value(const Value& item) {
    if constexpr (std::is_same_v<Value, bool>) {
      raw(item ? "true" : "false");
    } else if constexpr (std::is_floating_point_v<Value>) {
      number(item);
    } else if constexpr (std::is_integral_v<Value>) {
      number(static_cast<std::int64_t>(item));
    } else if constexpr (std::convertible_to<const Value&, std::string_view>) {
      text(item);
    } else if constexpr (requires { item.has_value(); }) {
      item ? value(*item) : raw("null");
    } else if constexpr (requires { item.begin()->second; }) {
      object([&] {
        for (const auto& [name, each] : item) member(name, each);
      });
    } else if constexpr (requires { item.begin(); }) {
      list([&] {
        for (const auto& each : item) value(each);
      });
    } else {
      write_json(*this, item);
    }
  }

  void key(std::string_view name);
  std::string take() { return std::move(text_); }

 private:
  void open(char bracket);
  void close(char bracket);
  void raw(std::string_view words);
  void text(std::string_view words);
  void number(double value);
  void number(std::int64_t value);

  std::string text_;
  bool follows_ = false;  // a value of the same list or object
};

}  // namespace neml2_capi
