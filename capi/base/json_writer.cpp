#include "capi/base/json_writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "capi/base/json_document.h"

namespace neml2_capi {

void JsonWriter::open(char bracket) {
  raw({&bracket, 1});
  follows_ = false;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  follows_ = true;
}

void JsonWriter::key(std::string_view name) {
  text(name);
  text_ += ':';
  follows_ = false;
}

void JsonWriter::raw(std::string_view words) {
  if (std::exchange(follows_, true)) text_ += ',';
  text_ += words;
}

void JsonWriter::text(std::string_view words) { raw(quoted(words)); }

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return raw("null");
  char digits[32];
  const std::string_view shortest(
      digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits));
  raw(shortest);
  if (shortest.find_first_of(".e") == std::string_view::npos) text_ += ".0";
}

void JsonWriter::number(std::int64_t value) { raw(std::to_string(value)); }

}  // namespace neml2_capi
