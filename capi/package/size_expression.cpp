#include "capi/package/size_expression.h"

#include <algorithm>
#include <charconv>

namespace neml2_capi::aoti {

// Parser by recursive descent. Each function returns false if the text is not of its kind.
class SizeParser {
 public:
  SizeParser(std::string_view text, const SizeExpression::Symbols& symbols, std::vector<SizeExpression::Step>& steps)
      : rest_(text), symbols_(symbols), steps_(steps) {}

  bool all() { return sum() && rest_.empty(); }

 private:
  bool sum() {
    return chain("+-", [this] { return product(); });
  }
  bool product() {
    return chain("*", [this] { return factor(); });
  }

  template <class Item>
  bool chain(std::string_view operators, Item&& item) {
    if (!item()) return false;
    for (;;) {
      const char found = skip_blanks();
      if (found == '\0' || operators.find(found) == std::string_view::npos) return true;
      rest_.remove_prefix(1);
      if (!item()) return false;
      steps_.push_back({found, 0});
    }
  }

  bool factor() {
    const char first = skip_blanks();
    if (first == '(') {
      rest_.remove_prefix(1);
      if (!sum() || skip_blanks() != ')') return false;
      rest_.remove_prefix(1);
      return true;
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error == std::errc()) {
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (rest_.starts_with('L')) rest_.remove_prefix(1);
      steps_.push_back({'n', number});
      return true;
    }
    const std::size_t length = std::min(rest_.find_first_of(" +-*()<>,:"), rest_.size());
    const auto symbol = symbols_.find(rest_.substr(0, length));
    if (symbol == symbols_.end()) return false;
    rest_.remove_prefix(length);
    steps_.push_back({'s', static_cast<std::int64_t>(symbol->second)});
    return true;
  }

  char skip_blanks() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }

  std::string_view rest_;
  const SizeExpression::Symbols& symbols_;
  std::vector<SizeExpression::Step>& steps_;
};

SizeExpression::SizeExpression(std::string_view text, const Symbols& symbols) {
  constexpr std::size_t longest = 1000;  // bounds the recursion
  if (text.size() > longest || !SizeParser(text, symbols, steps_).all()) steps_.clear();
}

std::int64_t SizeExpression::evaluate(const std::int64_t* values) const {
  std::vector<std::int64_t> results;
  for (const Step& step : steps_) {
    if (step.kind == 'n' || step.kind == 's') {
      results.push_back(step.kind == 'n' ? step.value : values[step.value]);
      continue;
    }
    const std::int64_t right = results.back();
    results.pop_back();
    std::int64_t& left = results.back();
    const auto a = static_cast<std::uint64_t>(left), b = static_cast<std::uint64_t>(right);  // which may overflow
    left = static_cast<std::int64_t>(step.kind == '+' ? a + b : step.kind == '-' ? a - b : a * b);
  }
  return results.back();
}

}  // namespace neml2_capi::aoti
