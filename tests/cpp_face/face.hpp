// What the tests of the C++ face share: checks of what is thrown, and the models that are installed with the examples.
#pragma once

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "../c/check.h"
#include "neml2_capi_experimental.hpp"

namespace face {

using Tensor6 = std::array<double, 6>;

inline std::string path(const std::string& name) {
  const char* folder = std::getenv("NEML2_TEST_ARTIFACTS");
  return (folder ? folder : "examples/artifacts") + ("/" + name);
}

// Whether `request` throws an Error of this status that is about `subject`.
template <class Request>
bool refuses(int32_t status, const std::string& subject, Request&& request) {
  try {
    request();
  } catch (const neml2::Error& error) {
    const bool expected = error.status() == status && error.subject() == subject && error.what()[0] != '\0';
    if (!expected)
      std::fprintf(stderr, "  thrown: %d, '%s': %s\n", static_cast<int>(error.status()), error.subject().c_str(),
                   error.what());
    return expected;
  }
  return false;
}

// Strains with six distinct components, other ones at each point.
inline std::vector<Tensor6> strains(std::size_t n) {
  std::vector<Tensor6> strain(n);
  for (std::size_t p = 0; p < n; ++p) {
    const double factor = 1 + 0.1 * static_cast<double>(p);
    strain[p] = {1e-3 * factor, -3e-4 * factor, -2e-4 * factor, 2e-4 * factor, -1e-4 * factor, 5e-5 * factor};
  }
  return strain;
}

// Hooke's law in Mandel notation, nu = 0.3.
inline Tensor6 hooke(const Tensor6& strain, double young = 200e3) {
  Tensor6 stress;
  for (std::size_t i = 0; i < 6; ++i)
    stress[i] = young / 1.3 * (strain[i] + (i < 3 ? 0.75 * (strain[0] + strain[1] + strain[2]) : 0));
  return stress;
}

// Equal to `tolerance`, relative to the greatest magnitude of `expected`.
template <class Values, class Expected>
bool near(const Values& values, const Expected& expected, double tolerance = 1e-12) {
  const neml2::Span a(values);
  const neml2::Span b(expected);
  double scale = 0, error = 0;
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    scale = std::fmax(scale, std::fabs(b[i]));
    error = std::fmax(error, std::fabs(a[i] - b[i]));
  }
  return error <= tolerance * scale;
}

// Whether an elastic model gives Hooke's law: what must hold after every error.
inline bool is_elastic(const neml2::Model& model, double young = 200e3) {
  const auto strain = strains(3);
  std::vector<Tensor6> stress(3), expected;
  for (const Tensor6& point : strain) expected.push_back(hooke(point, young));
  neml2::Call call(model);
  call.bind_input("strain", strain).bind_output("stress", stress);
  return call.run(3) == NEML2_OK && near(stress, expected);
}

// One step of viscoplastic points from rest, each with its own strain, bound in a call; the states interleave.
struct Step {
  Step(const neml2::Model& model, std::size_t n) : strain(n), old_strain(n), state(n), old_state(n), call(model) {
    for (std::size_t p = 0; p < n; ++p) {
      const double e = 0.01 / (1 + 0.5 * static_cast<double>(p));
      strain[p] = {e, -0.3 * e, -0.25 * e, 0.1 * e, -0.2 * e, 0.05 * e};
    }
    call.bind_input("t", time, 0).bind_input("t~1", old_time, 0);
    call.bind_input("strain", strain).bind_input("strain~1", old_strain);
    for (std::size_t i = 0; i < names.size(); ++i) {
      call.bind_input(names[i] + "~1", neml2::Span(old_state).from(begins[i]), 19);
      call.bind_output(names[i], neml2::Span(state).from(begins[i]), 19);
    }
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // The same inputs as tensors: states are strided, and the times have no batch.
  std::vector<neml2::Tensor> tensors;
  neml2::Arguments arguments() {
    using neml2::Tensor;
    const int64_t n = static_cast<int64_t>(strain.size());
    tensors.clear();
    tensors.push_back(Tensor::wrap(time, {}));
    tensors.push_back(Tensor::wrap(old_time, {}));
    tensors.push_back(Tensor::wrap(strain, {n, 6}));
    tensors.push_back(Tensor::wrap(old_strain, {n, 6}));
    for (const std::size_t i : {0u, 2u, 3u})
      tensors.push_back(Tensor::wrap(neml2::Span(old_state).from(begins[i]), {n, 6}, {19, 1}));
    tensors.push_back(Tensor::wrap(neml2::Span(old_state).from(6), {n}, {19}));
    return {{"t", tensors[0]},        {"t~1", tensors[1]},
            {"strain", tensors[2]},   {"strain~1", tensors[3]},
            {"stress~1", tensors[4]}, {"X1~1", tensors[5]},
            {"X2~1", tensors[6]},     {"equivalent_plastic_strain~1", tensors[7]}};
  }

  const std::vector<std::string> names = {"stress", "equivalent_plastic_strain", "X1", "X2"};
  const std::array<std::size_t, 4> begins = {0, 6, 7, 13};
  double time = 1, old_time = 0;
  std::vector<Tensor6> strain, old_strain;
  std::vector<std::array<double, 19>> state, old_state;
  neml2::Call call;
};

// What main() returns: an Error that nobody expected is a failure.
template <class Test>
int run(Test&& test) {
  try {
    test();
  } catch (const std::exception& error) {
    check_failed(__FILE__, __LINE__, error.what());
  }
  return CHECK_RESULT();
}

}  // namespace face
