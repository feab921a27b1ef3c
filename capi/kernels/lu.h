// Linear systems, one in every lane, by LU factorisation with row pivoting.
//
// A row is exchanged where its pivot is less than a tenth of the largest of its column (threshold pivoting: Duff,
// Erisman and Reid, Direct Methods for Sparse Matrices, 2nd ed., 2017, chapter 7). Every lane decides for itself.
#pragma once

#include <limits>

#include "capi/kernels/vectors.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

template <class T>
inline constexpr T no_number = std::numeric_limits<T>::quiet_NaN();

// Rows k and below exchange with row k where the pivot of a lane is too small.
template <class T>
[[gnu::noinline]] void exchange(Lanes<T>* a, Lanes<T>* b, std::int64_t n, std::int64_t sides, std::int64_t k,
                                const Mask<T>& small) {
  Lanes<T> largest = absolute<T>(a[k * n + k]);
  Mask<T> row = Mask<T>{} + static_cast<Integer<T>>(k), at = row;
  for (std::int64_t i = k + 1; i < n; ++i) {
    const Lanes<T> size = absolute<T>(a[i * n + k]);
    at += 1;
    const Mask<T> larger = (size > largest) & small;
    largest = larger ? size : largest;
    row = larger ? at : row;
  }
  for (std::int64_t i = k + 1; i < n; ++i) {
    const Mask<T> swapped = row == static_cast<Integer<T>>(i);
    if (!any(swapped)) continue;
    const auto swap = [&](Lanes<T>& x, Lanes<T>& y) {
      const Lanes<T> old = x;
      x = swapped ? y : x;
      y = swapped ? old : y;
    };
    for (std::int64_t j = k; j < n; ++j) swap(a[k * n + j], a[i * n + j]);
    for (std::int64_t j = 0; j < sides; ++j) swap(b[k * sides + j], b[i * sides + j]);
  }
}

// Division by a pivot: by its reciprocal, unless that or the pivot has lost digits to underflow.
template <class T>
struct Pivot {
  Lanes<T> value, reciprocal;
  Mask<T> exact;
  bool plain;

  [[gnu::always_inline]] explicit Pivot(const Lanes<T>& pivot) : value(pivot), reciprocal(T(1) / pivot) {
    constexpr T least = std::numeric_limits<T>::min();
    const Lanes<T> size = absolute<T>(pivot);
    exact = ~((size >= least) & (size <= T(1) / least));
    plain = !any(exact);
  }
  [[gnu::always_inline]] Lanes<T> divide(const Lanes<T>& x) const {
    const Lanes<T> quotient = x * reciprocal;
    if (plain) return quotient;
    return exact ? x / value : quotient;
  }
};

// Solve A x = b for `sides` right-hand sides: A is (n, n), b (n, sides), row-major, and both are overwritten, b with x.
// Returns the lanes whose matrix is singular; x is NaN there.
template <class T>
Mask<T> solve(Lanes<T>* a, Lanes<T>* b, std::int64_t n, std::int64_t sides) {
  using V = Lanes<T>;
  Mask<T> singular{};
  for (std::int64_t k = 0; k < n; ++k) {
    V largest = V{};
    for (std::int64_t i = k + 1; i < n; ++i) {
      const V size = absolute<T>(a[i * n + k]);
      largest = size > largest ? size : largest;
    }
    const Mask<T> small = absolute<T>(a[k * n + k]) < T(0.1) * largest;
    if (any(small)) exchange<T>(a, b, n, sides, k, small);
    singular |= a[k * n + k] == T(0);
    const Pivot<T> pivot(a[k * n + k]);
    const V* const row = a + k * n;
    const V* const side = b + k * sides;
    const auto eliminate = [&](std::int64_t i, auto rows) {
      constexpr int count = decltype(rows)::value;
      V factor[count];
      for (int m = 0; m < count; ++m) factor[m] = pivot.divide(a[(i + m) * n + k]);
      for (std::int64_t j = k + 1; j < n; ++j) {
        const V above = row[j];
        for (int m = 0; m < count; ++m) a[(i + m) * n + j] -= factor[m] * above;
      }
      for (std::int64_t j = 0; j < sides; ++j) {
        const V above = side[j];
        for (int m = 0; m < count; ++m) b[(i + m) * sides + j] -= factor[m] * above;
      }
    };
    std::int64_t i = k + 1;
    for (; i + 4 <= n; i += 4) eliminate(i, std::integral_constant<int, 4>());
    for (; i + 2 <= n; i += 2) eliminate(i, std::integral_constant<int, 2>());
    if (i < n) eliminate(i, std::integral_constant<int, 1>());
  }
  for (std::int64_t k = n; k-- > 0;) {
    const Pivot<T> pivot(a[k * n + k]);
    for (std::int64_t j = 0; j < sides; ++j) {
      V sum = b[k * sides + j];
      for (std::int64_t i = k + 1; i < n; ++i) sum -= a[k * n + i] * b[i * sides + j];
      b[k * sides + j] = pivot.divide(sum);
    }
  }
  if (any(singular))
    for (std::int64_t i = 0; i < n * sides; ++i) b[i] = singular ? all_of<V>(no_number<double>) : b[i];
  return singular;
}

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
