// Sizes in a package's source: numbers, symbols, and sums and products of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace neml2_capi::aoti {

class SizeExpression {
 public:
  // Position of each symbol among the values.
  using Symbols = std::map<std::string, std::size_t, std::less<>>;

  // Parses "2L*s17 + 1L". The expression is unknown if the text cannot be parsed, or has a symbol without a value.
  SizeExpression(std::string_view text, const Symbols& symbols);

  bool is_known() const { return !steps_.empty(); }
  std::int64_t evaluate(const std::int64_t* values) const;

 private:
  friend class SizeParser;
  struct Step {
    char kind;  // 'n': a number, 's': a symbol; an operator takes the last two results
    std::int64_t value;
  };
  std::vector<Step> steps_;
};

}  // namespace neml2_capi::aoti
