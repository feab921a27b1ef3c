// Newton's method with a dense LU, one point after another: what one writes for a material routine.
#pragma once

#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace benchmark {

template <int N>
using Vector = std::array<double, N>;
template <int N>
using Matrix = std::array<std::array<double, N>, N>;

// b becomes the solution of a x = b, by elimination with partial pivoting; a is spent. False if a is singular.
template <int N>
bool solve_linear(Matrix<N>& a, Vector<N>& b) {
  for (int k = 0; k < N; ++k) {
    int pivot = k;
    for (int i = k + 1; i < N; ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    if (a[pivot][k] == 0) return false;
    if (pivot != k) {
      std::swap(a[pivot], a[k]);
      std::swap(b[pivot], b[k]);
    }
    const double inverse = 1 / a[k][k];
    for (int i = k + 1; i < N; ++i) {
      const double factor = a[i][k] * inverse;
      for (int j = k + 1; j < N; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (int i = N - 1; i >= 0; --i) {
    for (int j = i + 1; j < N; ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  return true;
}

template <int N>
double norm(const Vector<N>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Solve law(u, r, J) = 0 from the guess u on, with the tolerances of the models of the benchmarks; the steps made.
template <int N, class Law>
int solve_nonlinear(const Law& law, Vector<N>& u) {
  constexpr double absolute = 1e-10, relative = 1e-10;
  constexpr int most = 50;
  Vector<N> r;
  Matrix<N> jacobian;
  double first = 0;
  for (int k = 0; k < most; ++k) {
    law(u, r, jacobian);
    const double size = norm<N>(r);
    if (k == 0) first = size;
    if (size < absolute || size < relative * first) return k;
    if (!solve_linear<N>(jacobian, r)) break;
    for (int i = 0; i < N; ++i) u[i] -= r[i];
  }
  throw std::runtime_error("the hand-written routine did not converge");
}

}  // namespace benchmark
