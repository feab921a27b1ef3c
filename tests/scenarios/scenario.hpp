// Helpers of the scenarios in C++: floating-point traps, strains, and the printing of results.
#pragma once

#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../c/check.h"
#include "neml2_capi_experimental.hpp"

namespace scenario {

using Tensor6 = std::array<double, 6>;
using State = std::array<double, 19>;  // stress, equivalent plastic strain, X1, X2

// Every language computes strains by these operations in this order, so that all get the same bits.
constexpr Tensor6 direction = {1, -0.3, -0.25, 0.1, -0.2, 0.05};

constexpr double young = 200e3, poisson = 0.3;

// The traps that are on, in both units: fegetexcept() alone sees the one of long doubles.
inline unsigned traps() {
  unsigned on = 0;
#if defined(__GLIBC__)
  on = static_cast<unsigned>(fegetexcept());
#endif
#if defined(__x86_64__)
  on |= ((~_mm_getcsr() & _MM_MASK_MASK) >> 7) << 8;
#endif
  return on;
}

// Runs a scenario with traps on. Returns the status of main().
template <class Scenario>
int run(Scenario&& scenario) {
#if defined(__GLIBC__)
  if (!std::getenv("NEML2_TEST_NO_TRAPS")) feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#endif
  const unsigned traps_of_host = traps();
  try {
    scenario();
  } catch (const std::exception& error) {
    check_failed(__FILE__, __LINE__, error.what());
  }
  CHECK(traps() == traps_of_host);
  return CHECK_RESULT();
}

inline std::string artifact(const std::string& name) {
  const char* folder = std::getenv("NEML2_TEST_ARTIFACTS");
  return (folder ? folder : "examples/artifacts") + ("/" + name);
}

inline neml2::Model load(const std::string& name) { return neml2::Model(artifact(name)); }

inline std::vector<Tensor6> elastic_strains(int n) {
  std::vector<Tensor6> strain(static_cast<std::size_t>(n));
  for (std::size_t p = 0; p < strain.size(); ++p)
    for (std::size_t i = 0; i < 6; ++i) strain[p][i] = 1e-3 * direction[i] * (1 + 0.1 * static_cast<double>(p));
  return strain;
}

inline double triangle(int k) { return k <= 5 ? k / 5.0 : k <= 15 ? 2 - k / 5.0 : k / 5.0 - 4; }

// Hooke's law in Mandel notation: stress = 2 G strain + lambda tr(strain) I.
inline Tensor6 hooke(double modulus, const Tensor6& strain) {
  const double shear = modulus / (2 * (1 + poisson)), lambda = 2 * shear * poisson / (1 - 2 * poisson);
  Tensor6 stress;
  for (std::size_t i = 0; i < 6; ++i)
    stress[i] = 2 * shear * strain[i] + (i < 3 ? lambda * (strain[0] + strain[1] + strain[2]) : 0);
  return stress;
}

// Tells whether both are equal to 1e-12, relative to the greatest expected magnitude.
inline bool near(const std::vector<Tensor6>& values, const std::vector<Tensor6>& expected) {
  double scale = 0, error = 0;
  for (std::size_t p = 0; p < expected.size(); ++p)
    for (std::size_t i = 0; i < 6; ++i) {
      scale = std::fmax(scale, std::fabs(expected[p][i]));
      error = std::fmax(error, std::fabs(values[p][i] - expected[p][i]));
    }
  return error <= 1e-12 * scale;
}

// Viscoplastic points from rest on, in one step of a history, bound in a call.
struct Points {
  // `first` is the number of the first among all points.
  Points(const neml2::Model& model, std::size_t n, std::size_t first = 0)
      : number(first), strain(n), old_strain(n), state(n), old_state(n), status(n), iterations(n), call(model) {
    call.bind_input("t", time, 0).bind_input("t~1", old_time, 0);
    call.bind_input("strain", strain).bind_input("strain~1", old_strain);
    const char* names[] = {"stress", "equivalent_plastic_strain", "X1", "X2"};
    const std::size_t begins[] = {0, 6, 7, 13};
    for (int i = 0; i < 4; ++i) {
      call.bind_input(names[i] + std::string("~1"), neml2::Span(old_state).from(begins[i]), 19);
      call.bind_output(names[i], neml2::Span(state).from(begins[i]), 19);
    }
    call.bind_report(NEML2_REPORT_STATUS, status).bind_report(NEML2_REPORT_ITERATIONS, iterations);
  }

  Points(const Points&) = delete;  // the call knows where the arrays are
  Points& operator=(const Points&) = delete;

  // Time and strains of step k of the cycle.
  void load(int k) {
    time = k;
    for (std::size_t p = 0; p < strain.size(); ++p) {
      const double amplitude = 0.01 * triangle(k) / (1 + 0.5 * static_cast<double>(number + p));
      for (std::size_t i = 0; i < 6; ++i) strain[p][i] = amplitude * direction[i];
    }
  }

  int32_t run() { return call.run(static_cast<int64_t>(strain.size())); }

  // Copies new values over old ones: the arrays stay where they are.
  void accept() {
    old_time = time;
    old_strain = strain;
    old_state = state;
  }

  std::size_t number;
  double time = 0, old_time = 0;
  std::vector<Tensor6> strain, old_strain;
  std::vector<State> state, old_state;
  std::vector<int32_t> status, iterations;
  neml2::Call call;
};

// Prints a line with the first `n` numbers of an array.
template <class Values>
void print(const char* name, const Values& values, std::size_t n) {
  std::printf("%s", name);
  for (std::size_t i = 0; i < n; ++i) std::printf(" %.17g", static_cast<double>(values[i]));
  std::printf("\n");
}

// Prints a line per point.
template <class Values>
void print_points(const char* name, const std::vector<Values>& points, std::size_t n) {
  for (const Values& point : points) print(name, point, n);
}

}  // namespace scenario
