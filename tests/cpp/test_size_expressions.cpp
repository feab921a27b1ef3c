// Sizes as a package's source writes them.
#include "capi/package/size_expression.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::SizeExpression;

namespace {

const SizeExpression::Symbols symbols = {{"s17", 0}, {"s35", 1}};

std::int64_t value_of(const std::string& text) {
  const SizeExpression expression(text, symbols);
  expect(expression.is_known(), join("known: ", text));
  const std::int64_t values[] = {7, 5};
  return expression.evaluate(values);
}

void sums_and_products_are_evaluated() {
  expect(value_of("3") == 3 && value_of("3L") == 3 && value_of("-3L") == -3, "numbers");
  expect(value_of("s35") == 5, "a symbol");
  expect(value_of("1L + 2L*s17") == 15 && value_of("2L*s17 - 1") == 13, "products come first");
  expect(value_of("s17 - s35 - 1L") == 1, "from the left on");
  expect(value_of("(s17 + 1L)*(s35)") == 40 && value_of("  s17  *( 2L )  ") == 14, "parentheses and blanks");
}

void overflow_wraps() {
  const SizeExpression expression("s17*s17 + s35 - s17", symbols);
  const std::int64_t values[] = {INT64_MAX, INT64_MAX};
  expect(expression.evaluate(values) == 1, "modulo 2^64");
}

void other_texts_are_unknown() {
  for (const char* text : {"", " ", "s18", "s17 +", "s17*", "*2", "s17 2", "2L)", "(2L", "(2L 3L)", "()", "(s18)",
                           "2L + s18", "s17 < 2", "L", "99999999999999999999"})
    expect(!SizeExpression(text, symbols).is_known(), join("unknown: ", text));
}

void the_length_is_bounded() {
  const auto nested = [](std::size_t depth) { return std::string(depth, '(') + "s17" + std::string(depth, ')'); };
  expect(value_of(nested(400)) == 7, "parentheses in one another");
  expect(!SizeExpression(nested(100000), symbols).is_known(), "more than any source has");
}

}  // namespace

int main() {
  sums_and_products_are_evaluated();
  overflow_wraps();
  other_texts_are_unknown();
  the_length_is_bounded();
  return 0;
}
