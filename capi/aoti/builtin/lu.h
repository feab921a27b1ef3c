// LU factorisation with partial pivoting, and what is solved with it: one matrix, n x n, column-major as in LAPACK.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace neml2_capi::aoti::builtin::lu {

// A = P L U in place. pivots[k] is the row, counted from 1, that was swapped with row k. Returns 0, or, as getrf, the
// number of the first zero pivot; the factors are then complete, but cannot be solved with.
template <class T>
std::int32_t factorise(T* a, std::int32_t* pivots, std::int64_t n) {
  std::int32_t info = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    T* column = a + k * n;
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(column[i]) > std::abs(column[pivot])) pivot = i;
    pivots[k] = static_cast<std::int32_t>(pivot + 1);
    if (column[pivot] == T(0)) {
      if (info == 0) info = static_cast<std::int32_t>(k + 1);
      continue;
    }
    if (pivot != k)
      for (std::int64_t j = 0; j < n; ++j) std::swap(a[k + j * n], a[pivot + j * n]);
    for (std::int64_t i = k + 1; i < n; ++i) column[i] /= column[k];
    for (std::int64_t j = k + 1; j < n; ++j) {
      T* to = a + j * n;
      const T factor = to[k];
      for (std::int64_t i = k + 1; i < n; ++i) to[i] -= column[i] * factor;
    }
  }
  return info;
}

// A x = b, in place.
template <class T>
void solve(const T* lu, const std::int32_t* pivots, std::int64_t n, T* x) {
  for (std::int64_t k = 0; k < n; ++k) std::swap(x[k], x[pivots[k] - 1]);
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t i = k + 1; i < n; ++i) x[i] -= lu[i + k * n] * x[k];
  for (std::int64_t k = n; k-- > 0;) {
    x[k] /= lu[k + k * n];
    for (std::int64_t i = 0; i < k; ++i) x[i] -= lu[i + k * n] * x[k];
  }
}

// A^T x = b, in place.
template <class T>
void solve_transposed(const T* lu, const std::int32_t* pivots, std::int64_t n, T* x) {
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = 0; i < k; ++i) x[k] -= lu[i + k * n] * x[i];
    x[k] /= lu[k + k * n];
  }
  for (std::int64_t k = n; k-- > 0;)
    for (std::int64_t i = k + 1; i < n; ++i) x[k] -= lu[i + k * n] * x[i];
  for (std::int64_t k = n; k-- > 0;) std::swap(x[k], x[pivots[k] - 1]);
}

}  // namespace neml2_capi::aoti::builtin::lu
