// Newton's method on systems with known roots, without any package.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "capi/newton/newton.h"
#include "capi/newton/rules.h"

namespace {

using neml2_capi::DType;
using neml2_capi::Groups;
using neml2_capi::Tensor;
using neml2_capi::Vector;
using neml2_capi::newton::Reports;
using neml2_capi::newton::Settings;
using neml2_capi::newton::System;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

// One unknown per point: r = f(u) - a, with f and its derivative chosen by the test.
class Scalars : public System {
 public:
  double (*f)(double) = [](double u) { return u * u; };
  double (*slope)(double) = [](double u) { return 2 * u; };
  bool shrinks = true;
  Vector<double> a;
  int linearizations = 0, quick_residuals = 0;

  explicit Scalars(Vector<double> targets) : a(std::move(targets)) {}

  Groups residual(const Groups& u) override {
    Groups out = {Tensor::empty(DType::float64, u[0].sizes())};
    for (std::size_t p = 0; p < a.size(); ++p) out[0].data_as<double>()[p] = a[p] - f(u[0].data_as<double>()[p]);
    return out;
  }
  Groups quick_residual(const Groups& u, const Vector<std::int64_t>& rows) override {
    ++quick_residuals;
    return neml2_capi::select_rows(residual(u), rows);
  }
  Groups linearize(const Groups& u) override {
    ++linearizations;
    slopes_.clear();
    for (std::size_t p = 0; p < a.size(); ++p) slopes_.push_back(slope(u[0].data_as<double>()[p]));
    residual_ = residual(u);
    return residual_;
  }
  Groups step(Vector<std::int32_t>& singular) override {
    singular.assign(a.size(), 0);
    Groups du = {residual_[0].copy()};
    for (std::size_t p = 0; p < a.size(); ++p) {
      singular[p] = slopes_[p] == 0.0;
      du[0].data_as<double>()[p] /= slopes_[p];
    }
    return du;
  }
  void keep(const Vector<std::int64_t>& rows) override {
    Vector<double> targets, slopes;
    for (std::int64_t row : rows) {
      targets.push_back(a[static_cast<std::size_t>(row)]);
      slopes.push_back(slopes_.empty() ? 0 : slopes_[static_cast<std::size_t>(row)]);
    }
    a = targets;
    slopes_ = slopes;
    if (!residual_.empty()) residual_ = neml2_capi::select_rows(residual_, rows);
  }
  bool can_shrink() const override { return shrinks; }

 private:
  Vector<double> slopes_;
  Groups residual_;
};

Groups start_at(double value, std::size_t points) {
  Groups u = {Tensor::empty(DType::float64, {static_cast<std::int64_t>(points), 1})};
  for (std::size_t p = 0; p < points; ++p) u[0].data_as<double>()[p] = value;
  return u;
}

double at(const Groups& u, std::size_t p) { return u[0].data_as<double>()[p]; }

const double nan_value = std::numeric_limits<double>::quiet_NaN();

void each_point_converges_on_its_own() {
  const Vector<double> a = {4.0, 1e-6, -1.3, 2.0, nan_value, 9e8};
  Settings settings;
  settings.miters = 40;
  for (const bool shrinks : {true, false}) {
    Scalars together(a);
    together.shrinks = shrinks;
    Groups u = start_at(1.0, a.size());
    const Reports outcome = solve(together, u, settings);
    for (std::size_t p = 0; p < a.size(); ++p) {
      Scalars alone({a[p]});
      Groups v = start_at(1.0, 1);
      const Reports single = solve(alone, v, settings);
      const bool solvable = a[p] > 0;
      expect(outcome.status[p] == (solvable ? NEML2_OK : NEML2_NOT_CONVERGED), "the status of a point");
      expect(outcome.status[p] == single.status[0], "status beside others and alone");
      expect(outcome.iterations[p] == single.iterations[0], "iterations beside others and alone");
      if (!solvable) continue;
      expect(at(u, p) == at(v, 0), "a point is bitwise the same beside others and alone");
      const double residual = std::abs(a[p] - at(u, p) * at(u, p)), first = std::abs(a[p] - 1.0);
      expect(residual < settings.atol || residual < settings.rtol * first, "the residual is below the tolerance");
    }
    expect(outcome.iterations[4] == 0, "a point that starts at NaN stops at once");
  }
}

void the_last_iterate_needs_no_operator() {
  Scalars system({4.0});
  Groups u = start_at(1.0, 1);
  const Reports outcome = solve(system, u, Settings());
  expect(outcome.status[0] == NEML2_OK && std::abs(at(u, 0) - 2.0) < 1e-8, "the root");
  expect(system.linearizations == outcome.iterations[0], "an operator for each step, and none at the solution");
}

// A slope that is wrong by a thousandth makes |r| a thousandth in each step: 1, 1e-3, 1e-6, 1e-9. From the first two,
// 1e-9 is expected of the third.
void an_expectation_may_fail() {
  Scalars system({1.0});
  system.f = [](double v) { return v; };
  system.slope = [](double) { return 1.0 / 0.999; };
  Settings settings;
  settings.atol = 1e-8;
  settings.rtol = 0.0;
  settings.keep_history = true;
  Groups u = start_at(0.0, 1);
  const Reports outcome = solve(system, u, settings);
  expect(outcome.status[0] == NEML2_OK && outcome.iterations[0] == 3, "it goes on");
  expect(std::abs(outcome.history[2] - 1e-6) < 1e-12, "from where it was");
  expect(system.linearizations == 3 && system.quick_residuals == 2, "a residual more");
}

// Newton's method for atan goes away from a root that is far: |r| grows by a sixth in the first step.
void a_residual_that_grows_ends_the_point() {
  const auto solved = [](double divtol) {
    Scalars system({0.0, 0.1});
    system.f = [](double u) { return std::atan(u); };
    system.slope = [](double u) { return 1 / (1 + u * u); };
    Groups u = start_at(3.0, 2);
    u[0].data_as<double>()[1] = 0.0;
    Settings settings;
    settings.divtol = divtol;
    return solve(system, u, settings);
  };
  const Reports reports = solved(1.1), patient = solved(Settings().divtol);
  expect(reports.status[0] == NEML2_NOT_CONVERGED && reports.iterations[0] == 1, "it ends with the first step");
  expect(reports.status[1] == NEML2_OK, "its neighbour goes on");
  expect(patient.iterations[0] > 1, "there is no bound unless one is set");
}

void history_holds_every_norm() {
  Scalars system({4.0});
  Groups u = start_at(1.0, 1);
  Settings settings;
  settings.keep_history = true;
  const Reports outcome = solve(system, u, settings);
  // u = 1, 2.5, 2.05, ... and r = 3, 2.25, 0.2025, ...
  expect(outcome.history[0] == 3.0 && outcome.history[1] == 2.25, "the first two norms");
  expect(std::abs(outcome.history[2] - 0.2025) < 1e-15, "the third norm");
  const auto last = static_cast<std::size_t>(outcome.iterations[0]);
  expect(outcome.history[last] == outcome.residual_norm[0], "the last norm");
  expect(std::isnan(outcome.history[last + 1]), "nothing beyond");
}

void whole_batch_fails_and_converges_as_one() {
  Settings settings;
  settings.whole_batch = true;
  Scalars good({4.0, 900.0});
  Groups u = start_at(1.0, 2);
  const Reports all = solve(good, u, settings);
  expect(all.status[0] == NEML2_OK && all.status[1] == NEML2_OK, "both converge");
  expect(all.iterations[0] == all.iterations[1], "after the same number of iterations");
  Scalars bad({4.0, nan_value});
  Groups v = start_at(1.0, 2);
  const Reports failed = solve(bad, v, settings);
  expect(failed.status[0] == NEML2_NOT_CONVERGED && failed.status[1] == NEML2_NOT_CONVERGED, "one failure fails all");
}

// From u = 3 Newton's method for arctan(u) = 0 runs away; a line search of either kind brings it home.
void line_search_reaches_what_full_steps_miss() {
  const auto run = [](Settings settings) {
    Scalars system({0.0, 0.0});
    system.f = [](double u) { return std::atan(u); };
    system.slope = [](double u) { return 1 / (1 + u * u); };
    Groups u = start_at(3.0, 2);
    const Reports outcome = solve(system, u, settings);
    expect(outcome.status[0] == outcome.status[1], "equal points end equally");
    expect(outcome.status[0] != NEML2_OK || std::abs(at(u, 0)) < 2e-8, "what converged is the root");
    return outcome.status[0];
  };
  Settings settings;
  settings.miters = 20;
  expect(run(settings) != NEML2_OK, "full steps diverge");
  settings.ls_max_iters = 10;
  expect(run(settings) == NEML2_OK, "backtracking converges");
  settings.strong_wolfe = true;
  settings.ls_c = 0.1;
  expect(run(settings) == NEML2_OK, "the second criterion converges");
}

void a_singular_point_is_told_apart() {
  Scalars system({4.0, 1.0});
  system.slope = [](double u) { return u == 1.0 ? 2.0 : 2 * u; };
  system.f = [](double u) { return u * u; };
  system.a = {4.0, 5.0};
  Groups u = start_at(1.0, 2);
  u[0].data_as<double>()[1] = 0.0;  // the slope 2u vanishes here
  Settings settings;
  const Reports outcome = solve(system, u, settings);
  expect(outcome.status[0] == NEML2_OK, "the regular point converges");
  expect(outcome.status[1] == NEML2_SINGULAR, "the other is singular");
}

void a_bound_of_one_makes_no_step() {
  Scalars system({4.0});
  Groups u = start_at(1.0, 1);
  Settings settings;
  settings.miters = 1;
  const Reports outcome = solve(system, u, settings);
  expect(outcome.status[0] == NEML2_NOT_CONVERGED && outcome.iterations[0] == 0, "no step");
  expect(at(u, 0) == 1.0, "the guess stays");
}

// The first of several systems of a point said NaN, and a later one said a number over it.
void a_norm_that_is_no_number_is_the_greatest() {
  using Of = neml2_capi::newton::Scalars;
  const double infinite = std::numeric_limits<double>::infinity();
  const auto joined = [](double first, double second) {
    neml2_capi::newton::Report<Of> all = {NEML2_NOT_CONVERGED, 1, first, 0.5};
    all.add({NEML2_OK, 1, second, 1.0});
    return all.residual_norm;
  };
  for (const double number : {0.0, 1e-12, 3.0, infinite}) {
    expect(std::isnan(joined(nan_value, number)), "NaN, then a number");
    expect(std::isnan(joined(number, nan_value)), "a number, then NaN");
    expect(joined(number, 1e-13) == std::max(number, 1e-13), "the greater of two, the first");
    expect(joined(1e-13, number) == std::max(number, 1e-13), "the greater of two, the second");
  }
}

}  // namespace

int main() {
  each_point_converges_on_its_own();
  the_last_iterate_needs_no_operator();
  an_expectation_may_fail();
  a_residual_that_grows_ends_the_point();
  history_holds_every_norm();
  whole_batch_fails_and_converges_as_one();
  line_search_reaches_what_full_steps_miss();
  a_singular_point_is_told_apart();
  a_bound_of_one_makes_no_step();
  a_norm_that_is_no_number_is_the_greatest();
  std::puts("newton: all passed");
  return 0;
}
