// The iterative linear solvers on dense systems with known solutions, without any package.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "capi/newton/krylov.h"

namespace {

using neml2_capi::Dims;
using neml2_capi::DType;
using neml2_capi::Tensor;
using neml2_capi::Vector;
using neml2_capi::newton::LinearOutcome;
using neml2_capi::newton::LinearSettings;
using neml2_capi::newton::Operator;
using neml2_capi::newton::solve_dense_columns;
using neml2_capi::newton::solve_linear;
using Method = LinearSettings::Method;

constexpr Method methods[] = {Method::gmres, Method::bicgstab};

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

double& at(const Tensor& tensor, std::int64_t i) { return tensor.data_as<double>()[i]; }

// Square matrices, one per point, and the solutions that the right-hand sides are made from.
struct Problem {
  std::int64_t points, n;
  Tensor a, x, b;

  Problem(std::int64_t points, std::int64_t n)
      : points(points),
        n(n),
        a(Tensor::zeros(DType::float64, {points, n, n})),
        x(Tensor::zeros(DType::float64, {points, n})),
        b(Tensor::zeros(DType::float64, {points, n})) {}

  void make_right_hand_sides() { b = times(a, x); }

  static Tensor times(const Tensor& a, const Tensor& x) {
    const std::int64_t n = x.sizes()[1];
    Tensor product = Tensor::zeros(DType::float64, x.sizes());
    for (std::int64_t i = 0; i < product.numel(); ++i)
      for (std::int64_t k = 0; k < n; ++k) at(product, i) += at(a, i * n + k) * at(x, i / n * n + k);
    return product;
  }
  Operator matvec() const {
    return [a = a](const Tensor& v) { return times(a, v); };
  }
  // Some of the points, one after another.
  Problem select(const Vector<std::int64_t>& rows) const {
    Problem some(static_cast<std::int64_t>(rows.size()), n);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto to = static_cast<std::int64_t>(r);
      for (std::int64_t i = 0; i < n * n; ++i) at(some.a, to * n * n + i) = at(a, rows[r] * n * n + i);
      for (std::int64_t i = 0; i < n; ++i) at(some.x, to * n + i) = at(x, rows[r] * n + i);
      for (std::int64_t i = 0; i < n; ++i) at(some.b, to * n + i) = at(b, rows[r] * n + i);
    }
    return some;
  }
  double error(const Tensor& found, std::int64_t point) const {
    double sum = 0, size = 0;
    for (std::int64_t i = point * n; i < (point + 1) * n; ++i) {
      sum += (at(found, i) - at(x, i)) * (at(found, i) - at(x, i));
      size += at(x, i) * at(x, i);
    }
    return std::sqrt(sum / size);
  }
};

// Unsymmetric matrices I + coupling * noise: the greater the coupling, the more iterations; it grows with the point.
Problem unsymmetric(std::int64_t points, std::int64_t n) {
  Problem problem(points, n);
  std::mt19937 random(7);
  const auto noise = [&] { return static_cast<double>(random()) / 4294967295.0 - 0.5; };
  for (std::int64_t p = 0; p < points; ++p) {
    const double coupling = 1.5 * static_cast<double>(p) / static_cast<double>(points);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t k = 0; k < n; ++k)
        at(problem.a, (p * n + i) * n + k) = coupling * noise() + (i == k ? 1.0 : 0.0);
      at(problem.x, p * n + i) = noise() + 1.0;
    }
  }
  problem.make_right_hand_sides();
  return problem;
}

LinearSettings accurate(Method method) {
  LinearSettings settings;
  settings.method = method;
  settings.rel_tol = 1e-12;
  return settings;
}

bool same_row(const Tensor& a, std::int64_t row, const Tensor& b, std::int64_t other) {
  const std::int64_t bytes = a.sizes()[1] * a.itemsize();
  return std::memcmp(a.data_as<char>() + row * bytes, b.data_as<char>() + other * bytes,
                     static_cast<std::size_t>(bytes)) == 0;
}

void both_methods_find_the_solution() {
  const Problem problem = unsymmetric(12, 6);
  for (const Method method : methods)
    for (const bool whole_batch : {false, true}) {
      LinearSettings settings = accurate(method);
      settings.whole_batch = whole_batch;
      // The floor below denominators, which the whole batch takes from NEML2, stops BiCGStab at about 1e-8.
      if (whole_batch) settings.rel_tol = 1e-7;
      Tensor x;
      const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, x, settings);
      for (std::int64_t p = 0; p < problem.points; ++p) {
        expect(outcome.converged[static_cast<std::size_t>(p)], "every point converges");
        // The condition numbers are below 100.
        expect(problem.error(x, p) < 100 * settings.rel_tol, "to the solution");
      }
      expect(outcome.iterations[0] == 1, "a unit matrix takes one iteration");
      expect(outcome.iterations[11] > 4, "and a coupled one more");
    }
}

void a_point_does_not_depend_on_its_neighbours() {
  Problem problem = unsymmetric(9, 5);
  at(problem.b, 4 * 5 + 2) = std::numeric_limits<double>::quiet_NaN();
  for (const Method method : methods)
    for (const std::int64_t restart : {2, 40}) {
      LinearSettings settings = accurate(method);
      settings.restart = restart;
      Tensor all;
      const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, all, settings);
      for (std::int64_t p = 0; p < problem.points; ++p) {
        if (p == 4) continue;
        for (const Vector<std::int64_t>& rows : {Vector<std::int64_t>{p}, {8, p, 4}, {p, p, 0, 1, 2, 3, 5, 6, 7, 8}}) {
          const Problem some = problem.select(rows);
          Tensor x;
          const LinearOutcome other = solve_linear(some.matvec(), {}, some.b, x, settings);
          const std::size_t row = rows.size() == 3 ? 1 : 0;
          expect(same_row(x, static_cast<std::int64_t>(row), all, p), "bitwise the same solution");
          expect(other.iterations[row] == outcome.iterations[static_cast<std::size_t>(p)], "after as many iterations");
        }
      }
    }
}

void a_point_of_nan_stops_at_once_and_alone() {
  Problem problem = unsymmetric(3, 4);
  at(problem.b, 1 * 4) = std::numeric_limits<double>::quiet_NaN();
  for (const Method method : methods)
    for (const bool whole_batch : {false, true}) {
      LinearSettings settings = accurate(method);
      settings.whole_batch = whole_batch;
      int products = 0;
      const Operator counted = [&](const Tensor& v) {
        ++products;
        return Problem::times(problem.a, v);
      };
      Tensor x;
      const LinearOutcome outcome = solve_linear(counted, {}, problem.b, x, settings);
      expect(!outcome.converged[1] && outcome.iterations[1] == 0 && std::isnan(at(x, 4)), "it becomes NaN");
      expect(outcome.converged[0] && outcome.converged[2], "the others converge");
      expect(products < 20, "and nobody waits for it");
    }
}

void an_operator_of_nan_stops_its_point() {
  Problem problem = unsymmetric(2, 3);
  at(problem.a, 9) = std::numeric_limits<double>::infinity();
  for (const Method method : methods) {
    Tensor x;
    const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, x, accurate(method));
    expect(outcome.converged[0] && !outcome.converged[1], "only the regular point converges");
    expect(std::isnan(at(x, 3)), "the other becomes NaN");
  }
}

void restarts_reach_the_same_solution_later() {
  const Problem problem = unsymmetric(12, 6);
  LinearSettings settings = accurate(Method::gmres);
  Tensor x, restarted;
  const LinearOutcome full = solve_linear(problem.matvec(), {}, problem.b, x, settings);
  settings.restart = 3;
  const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, restarted, settings);
  expect(outcome.iterations[11] > full.iterations[11], "short cycles take more iterations");
  for (std::int64_t p = 0; p < problem.points; ++p) expect(problem.error(restarted, p) < 1e-10, "the same solution");
}

void the_bound_on_iterations_holds() {
  const Problem problem = unsymmetric(12, 6);
  for (const Method method : methods) {
    LinearSettings settings = accurate(method);
    settings.max_its = settings.restart = 2;
    Tensor x, further;
    const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, x, settings);
    expect(outcome.iterations[11] == 2 && !outcome.converged[11], "the slow point stops at the bound");
    expect(outcome.converged[0], "the unit matrix has converged before");
    settings.max_its = 4;
    solve_linear(problem.matvec(), {}, problem.b, further, settings);
    expect(problem.error(further, 6) < problem.error(x, 6), "more iterations come closer");
    settings.max_its = 0;
    solve_linear(problem.matvec(), {}, problem.b, x, settings);
    expect(at(x, 0) == 0.0, "without any, x = 0");
  }
}

// With n orthonormal vectors the Krylov space is exhausted; rounding errors must not be taken for another direction.
void a_tolerance_below_rounding_does_no_harm() {
  const Problem problem = unsymmetric(12, 6);
  for (const Method method : methods) {
    LinearSettings settings = accurate(method);
    settings.rel_tol = 0.0;
    settings.max_its = 100;
    Tensor x;
    solve_linear(problem.matvec(), {}, problem.b, x, settings);
    for (std::int64_t p = 0; p < problem.points; ++p) expect(problem.error(x, p) < 1e-12, "the solution stays");
  }
}

void the_scale_of_a_system_does_not_matter() {
  const Problem problem = unsymmetric(4, 6);
  for (const Method method : methods)
    for (const int exponent : {-90, 90}) {
      Problem scaled = problem.select({0, 1, 2, 3});
      for (std::int64_t i = 0; i < scaled.b.numel(); ++i) at(scaled.b, i) = std::ldexp(at(scaled.b, i), exponent);
      Tensor x, y;
      solve_linear(problem.matvec(), {}, problem.b, x, accurate(method));
      solve_linear(scaled.matvec(), {}, scaled.b, y, accurate(method));
      for (std::int64_t i = 0; i < x.numel(); ++i)
        expect(at(y, i) == std::ldexp(at(x, i), exponent), "the solution is bitwise the scaled system's");
    }
}

void the_absolute_tolerance_counts_too() {
  const Problem problem = unsymmetric(2, 30);
  for (const Method method : methods) {
    LinearSettings settings = accurate(method);
    Tensor x;
    const LinearOutcome further = solve_linear(problem.matvec(), {}, problem.b, x, settings);
    settings.abs_tol = 1e-3;
    const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, x, settings);
    const Tensor product = Problem::times(problem.a, x);
    double residual = 0;
    for (std::int64_t i = 30; i < 60; ++i) residual += std::pow(at(problem.b, i) - at(product, i), 2);
    expect(outcome.converged[1] && std::sqrt(residual) < 1e-3, "the residual is below it");
    expect(outcome.iterations[1] < further.iterations[1], "and no further iterations are made");
  }
}

void a_preconditioner_saves_iterations() {
  const std::int64_t n = 24;
  Problem problem = unsymmetric(20, n);
  // Rows of very different size, which the inverse diagonal brings together.
  for (std::int64_t i = 0; i < problem.a.numel(); ++i) at(problem.a, i) *= static_cast<double>(1 + i / n % n);
  problem.make_right_hand_sides();
  const Operator jacobi = [&](const Tensor& r) {
    Tensor z = r.copy();
    for (std::int64_t i = 0; i < z.numel(); ++i) at(z, i) /= at(problem.a, i * n + i % n);
    return z;
  };
  for (const Method method : methods) {
    Tensor x;
    const LinearOutcome plain = solve_linear(problem.matvec(), {}, problem.b, x, accurate(method));
    const LinearOutcome outcome = solve_linear(problem.matvec(), jacobi, problem.b, x, accurate(method));
    expect(2 * outcome.iterations[1] < plain.iterations[1], "half the iterations");
    expect(outcome.converged[1] && problem.error(x, 1) < 1e-9, "to the solution");
  }
}

void one_unknown_takes_one_iteration() {
  Problem problem(2, 1);
  at(problem.a, 0) = -4.0;
  at(problem.a, 1) = 1e-3;
  at(problem.x, 0) = at(problem.x, 1) = 3.0;
  problem.make_right_hand_sides();
  for (const Method method : methods) {
    Tensor x;
    const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, x, accurate(method));
    expect(outcome.iterations[0] == 1 && outcome.iterations[1] == 1, "one iteration");
    expect(problem.error(x, 0) < 1e-15 && problem.error(x, 1) < 1e-15, "gives the quotient");
  }
}

void a_right_hand_side_of_zero_needs_no_iteration() {
  Problem problem = unsymmetric(3, 4);
  for (std::int64_t i = 4; i < 8; ++i) at(problem.b, i) *= 0.0;
  for (const Method method : methods)
    for (const bool whole_batch : {false, true}) {
      LinearSettings settings = accurate(method);
      settings.whole_batch = whole_batch;
      Tensor x;
      const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, x, settings);
      expect(outcome.converged[1] && outcome.iterations[1] == 0, "it has converged");
      for (std::int64_t i = 4; i < 8; ++i) expect(at(x, i) == 0.0, "the solution is zero");
      expect(problem.error(x, 2) < 1e-10, "beside another that is not");
    }
}

void a_singular_matrix_ends() {
  Problem problem(2, 3);
  for (std::int64_t i = 0; i < 3; ++i) at(problem.a, i * 4) = static_cast<double>(i + 1);
  at(problem.a, 9) = at(problem.a, 13) = 1.0;  // diag(1, 1, 0)
  for (std::int64_t i = 0; i < 6; ++i) at(problem.x, i) = 1.0;
  problem.make_right_hand_sides();
  at(problem.b, 5) = 1.0;  // outside its range
  for (const Method method : methods) {
    LinearSettings settings = accurate(method);
    settings.max_its = 50;
    Tensor x;
    const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, x, settings);
    expect(outcome.converged[0] && problem.error(x, 0) < 1e-11, "the regular point converges");
    expect(!outcome.converged[1], "the singular one does not");
  }
}

void whole_batch_goes_on_until_all_are_done() {
  const Problem problem = unsymmetric(12, 6);
  LinearSettings settings;
  settings.rel_tol = 1e-2;
  Tensor alone, together;
  solve_linear(problem.matvec(), {}, problem.b, alone, settings);
  settings.whole_batch = true;
  const LinearOutcome outcome = solve_linear(problem.matvec(), {}, problem.b, together, settings);
  expect(outcome.iterations[2] < outcome.iterations[11], "a fast point beside a slow one");
  expect(problem.error(together, 2) < 1e-2 * problem.error(alone, 2), "shares its iterations");
}

void columns_are_solved_one_by_one() {
  const Problem problem = unsymmetric(4, 5);
  Tensor expected = Tensor::empty(DType::float64, {4, 5, 3}), b = Tensor::zeros(DType::float64, {4, 5, 3});
  for (std::int64_t i = 0; i < expected.numel(); ++i) at(expected, i) = std::cos(static_cast<double>(i));
  for (std::int64_t i = 0; i < b.numel(); ++i)
    for (std::int64_t k = 0; k < 5; ++k)
      at(b, i) += at(problem.a, i / 3 * 5 + k) * at(expected, (i / 15 * 5 + k) * 3 + i % 3);
  for (const Method method : methods) {
    const Tensor x = solve_dense_columns(problem.a, b, accurate(method));
    for (std::int64_t i = 0; i < x.numel(); ++i) expect(std::abs(at(x, i) - at(expected, i)) < 1e-10, "every column");
  }
}

void single_precision_works_too() {
  Tensor a = Tensor::zeros(DType::float32, {1, 2, 2}), b = Tensor::zeros(DType::float32, {1, 2, 1});
  const float matrix[] = {4, 1, -2, 3}, right[] = {6, 4};  // x = (1, 2)
  std::copy_n(matrix, 4, a.data_as<float>());
  std::copy_n(right, 2, b.data_as<float>());
  for (const Method method : methods) {
    LinearSettings settings = accurate(method);
    settings.rel_tol = 1e-6;
    const Tensor x = solve_dense_columns(a, b, settings);
    expect(std::abs(x.data_as<float>()[0] - 1) < 1e-5f && std::abs(x.data_as<float>()[1] - 2) < 1e-5f, "the solution");
  }
}

}  // namespace

int main() {
  both_methods_find_the_solution();
  a_point_does_not_depend_on_its_neighbours();
  a_point_of_nan_stops_at_once_and_alone();
  an_operator_of_nan_stops_its_point();
  restarts_reach_the_same_solution_later();
  the_bound_on_iterations_holds();
  a_tolerance_below_rounding_does_no_harm();
  the_scale_of_a_system_does_not_matter();
  the_absolute_tolerance_counts_too();
  a_preconditioner_saves_iterations();
  one_unknown_takes_one_iteration();
  a_right_hand_side_of_zero_needs_no_iteration();
  a_singular_matrix_ends();
  whole_batch_goes_on_until_all_are_done();
  columns_are_solved_one_by_one();
  single_precision_works_too();
  std::puts("krylov: all passed");
  return 0;
}
