// Linear systems in lanes, each with the pivots that it needs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>

#define NML2_INSTRUCTION_SET in_this_test
#include "capi/kernels/lu.h"
#include "tests/cpp/packages.h"

namespace {

using namespace neml2_capi;
using namespace neml2_capi::testing;
using kernels::in_this_test::Lanes;
using kernels::in_this_test::Mask;
using kernels::in_this_test::width;
constexpr int lanes = width<double>;

// One system for each lane, and what becomes of it.
struct Systems {
  std::int64_t n, sides;
  static constexpr std::size_t most = 21;
  Lanes<double> a[most * most], b[most * 6], left[most * most], x[most * 6];
  Mask<double> singular{};

  Systems(std::int64_t unknowns, std::int64_t right_sides, unsigned seed) : n(unknowns), sides(right_sides) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (auto& each : a)
      for (int l = 0; l < lanes; ++l) each[l] = normal(random);
    for (auto& each : b)
      for (int l = 0; l < lanes; ++l) each[l] = normal(random);
  }
  Lanes<double>& at(std::int64_t i, std::int64_t j) { return a[i * n + j]; }

  void solve() {
    std::copy(std::begin(a), std::end(a), left);
    std::copy(std::begin(b), std::end(b), x);
    singular = kernels::in_this_test::solve<double>(left, x, n, sides);
  }

  // |b - A x| over |A| |x|, the greatest of all.
  double error(int l) {
    double worst = 0;
    for (std::int64_t j = 0; j < sides; ++j)
      for (std::int64_t i = 0; i < n; ++i) {
        double sum = -b[i * sides + j][l], size = std::fabs(sum);
        for (std::int64_t k = 0; k < n; ++k) {
          const double product = at(i, k)[l] * x[k * sides + j][l];
          sum += product;
          size += std::fabs(product);
        }
        worst = std::max(worst, size > 0 ? std::fabs(sum) / size : 0);
      }
    return worst;
  }
};

void random_systems_are_solved() {
  for (std::int64_t n : {1, 2, 3, 7, 19, 21})
    for (std::int64_t sides : {1, 2, 6}) {
      Systems systems(n, sides, static_cast<unsigned>(n));
      systems.solve();
      for (int l = 0; l < lanes; ++l) {
        expect(systems.singular[l] == 0, "no random system is singular");
        expect(systems.error(l) < 1e-12, join("n = ", n, ", sides = ", sides, ": error ", systems.error(l)));
      }
    }
}

// Zero and tiny diagonals, and rows in any order, need exchanges, each lane its own.
void small_pivots_are_exchanged() {
  Systems systems(8, 2, 5);
  for (std::int64_t i = 0; i < 8; ++i) {
    systems.at(i, i)[0] = 0.0;
    systems.at(i, i)[1] = 1e-200;
    for (std::int64_t j = 0; j < 8; ++j) {
      systems.at(i, j)[2] = j == 7 - i ? 1e3 : 1e-3 * systems.at(i, j)[2];
      systems.at(i, j)[3] *= std::pow(10.0, static_cast<double>(4 * i));  // rows of all magnitudes
    }
  }
  systems.solve();
  for (int l = 0; l < lanes; ++l) {
    expect(systems.singular[l] == 0, "an exchange is enough");
    expect(systems.error(l) < 1e-12, join("lane ", l, ": error ", systems.error(l)));
  }
}

void singular_systems_are_told_and_others_are_not_disturbed() {
  Systems alone(5, 1, 3), beside(5, 1, 3);
  for (std::int64_t i = 0; i < 5; ++i) {
    beside.at(i, 2)[1] = 0.0;
    beside.at(3, i)[2] = std::numeric_limits<double>::quiet_NaN();
  }
  alone.solve();
  beside.solve();
  expect(beside.singular[1] != 0 && std::isnan(beside.x[0][1]), "a column of zeros is singular");
  expect(std::isnan(beside.x[0][2]), "NaN gives NaN");
  for (const int l : {0, 3}) {
    expect(beside.singular[l] == 0, "the others are not");
    for (std::size_t i = 0; i < 5; ++i) expect(beside.x[i][l] == alone.x[i][l], "a neighbour changes no bit");
  }
}

void tiny_systems_are_solved_by_division() {
  Systems systems(3, 1, 9);
  for (auto& each : systems.a) each *= 1e-309;
  for (auto& each : systems.b) each *= 1e-309;
  systems.solve();
  for (int l = 0; l < lanes; ++l)
    for (int i = 0; i < 3; ++i) expect(std::isfinite(systems.x[i][l]), "a reciprocal would be infinite");
}

}  // namespace

int main() {
  random_systems_are_solved();
  small_pivots_are_exchanged();
  singular_systems_are_told_and_others_are_not_disturbed();
  tiny_systems_are_solved_by_division();
  return 0;
}
