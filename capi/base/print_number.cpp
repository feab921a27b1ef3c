#include "capi/base/print_number.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace neml2_capi {

std::string_view print_number(char* text, std::size_t size, const char* format, double number) {
  if (std::isnan(number)) return "nan";
  const auto is_plain = [](char c) { return std::strchr("+-.0123456789einfa", c) != nullptr; };
  char* end = text + std::snprintf(text, size, format, number);
  char* const point = std::find_if_not(text, end, is_plain);
  if (point != end) {
    end = std::copy(std::find_if(point, end, is_plain), end, point + 1);
    *point = '.';
  }
  return {text, end};
}

std::optional<double> read_number(std::string_view text) {
  const bool is_word = text.find_first_of("0123456789") == std::string_view::npos;
  const char* const letters = is_word ? "+-infaINFA" : "+-.0123456789eE";
  if (text.empty() || text.find_first_not_of(letters) != std::string_view::npos) return std::nullopt;
  std::string number(text);
  if (const std::size_t point = number.find('.'); point != std::string::npos) {
    char half[32];  // tells how this locale writes a point
    const int length = std::snprintf(half, sizeof half, "%.1f", 0.5);
    number.replace(point, 1, half + 1, std::size_t(length - 2));
  }
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (end != number.data() + number.size() || (std::isinf(value) && !is_word)) return std::nullopt;
  return value;
}

}  // namespace neml2_capi
