#include "capi/base/json_writer.h"

#include <cmath>
#include <utility>

#include "capi/base/json_document.h"
#include "capi/base/print_number.h"

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
  std::string_view shortest;
  for (const char* const format : {"%.15g", "%.16g", "%.17g"}) {
    shortest = print_number(digits, sizeof digits, format, value);
    if (read_number(shortest) == value) break;
  }
  raw(shortest);
  if (shortest.find_first_of(".e") == std::string_view::npos) text_ += ".0";
}

void JsonWriter::number(std::int64_t value) { raw(std::to_string(value)); }

}  // namespace neml2_capi
