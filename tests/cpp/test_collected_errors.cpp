// Several errors of one package, in one message.
#include <clocale>
#include <limits>
#include <stdexcept>

#include "capi/package/collected_errors.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::CollectedErrors;

namespace {

void nothing_is_raised_without_errors() {
  CollectedErrors errors("a.pt2");
  errors.collect([] {});
  expect(errors.empty(), "no error");
  errors.raise_if_any();
}

void the_first_status_and_cause_count() {
  CollectedErrors errors("a.pt2");
  errors.collect([] { throw std::length_error("seventeen axes"); });
  errors.collect([] { throw Error(NEML2_ERROR_ARTIFACT, "", "no source", NEML2_CAUSE_SCHEMA_UNKNOWN); });
  errors.collect([] { throw Error(NEML2_ERROR_ARTIFACT, "", "no libtorch", NEML2_CAUSE_LIBTORCH_MISSING); });
  expect_error(NEML2_ERROR_UNSUPPORTED, "a.pt2: seventeen axes\na.pt2: no source\na.pt2: no libtorch",
               [&] { errors.raise_if_any(); });
  try {
    errors.raise_if_any();
  } catch (const Error& error) {
    expect(error.cause() == NEML2_CAUSE_SCHEMA_UNKNOWN && error.subject() == "a.pt2", "the first one that has a cause");
  }
}

void other_exceptions_are_not_collected() {
  CollectedErrors errors("a.pt2");
  try {
    errors.collect([] { throw std::bad_alloc(); });
  } catch (const std::bad_alloc&) {
    return expect(errors.empty(), "it ends the checks");
  }
  expect(false, "memory that lacks is no error of the package");
}

// A message is the same on every system, whatever prints a number there.
void numbers_are_printed_to_six_digits() {
  const double infinity = std::numeric_limits<double>::infinity();
  expect(join(0.1, " ", 1.0 / 3.0, " ", -2e-20, " ", 1e300, " ", 5.0, " ", -infinity) ==
             "0.1 0.333333 -2e-20 1e+300 5 -inf",
         "as %g does in C");
  const double undefined = std::numeric_limits<double>::quiet_NaN();
  expect(join(undefined, " ", -undefined) == "nan nan", "without a sign, which systems tell in their ways");
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // which has a comma, if it is installed
  expect(join(0.5) == "0.5", "with a point in any locale");
}

}  // namespace

int main() {
  numbers_are_printed_to_six_digits();
  nothing_is_raised_without_errors();
  the_first_status_and_cause_count();
  other_exceptions_are_not_collected();
  return 0;
}
