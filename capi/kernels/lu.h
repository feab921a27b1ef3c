// Linear systems, one in every lane, by LU factorisation with row pivoting.
//
// A row is exchanged if its pivot is less than a tenth of the largest of its column (threshold pivoting: Duff,
// Erisman and Reid, Direct Methods for Sparse Matrices, 2nd ed., 2017, chapter 7). Every lane decides for itself.
#pragma once

#include <limits>

#include "capi/kernels/vectors.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

template <class T>
inline constexpr T no_number = std::numeric_limits<T>::quiet_NaN();

// Exchanges row k with the row of the largest pivot, if a lane's pivot is too small.
template <class T>
[[gnu::noinline]] void exchange(Lanes<T>* a, Lanes<T>* b, std::int64_t n, std::int64_t sides, std::int64_t k,
                                const Mask<T>& small) {
  Lanes<T> largest = absolute(a[k * n + k]);
  Mask<T> row = Mask<T>{} + static_cast<Integer<T>>(k), at = row;
  for (std::int64_t i = k + 1; i < n; ++i) {
    const Lanes<T> size = absolute(a[i * n + k]);
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
      set_where(swapped, x, y);
      set_where(swapped, y, old);
    };
    for (std::int64_t j = 0; j < n; ++j) swap(a[k * n + j], a[i * n + j]);
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
    const Lanes<T> size = absolute(pivot);
    exact = ~((size >= least) & (size <= T(1) / least));
    plain = !any(exact);
  }
  [[gnu::always_inline]] Lanes<T> divide(const Lanes<T>& x) const {
    const Lanes<T> quotient = x * reciprocal;
    if (plain) return quotient;
    return exact ? x / value : quotient;
  }
};

// Sums that are made at a time, in registers.
inline constexpr int sums = vector_bytes > 32 ? 6 : 4;

// Elements of one row of A, side by side, less the products of the factors of their row and of the rows above.
template <class T, int count>
[[gnu::always_inline]] inline void reduce_row(Lanes<T>* elements, const Lanes<T>* factors, const Lanes<T>* above,
                                              std::int64_t n, std::int64_t products) {
  Lanes<T> sum[count];
#pragma GCC unroll 8
  for (int e = 0; e < count; ++e) sum[e] = elements[e];
  for (std::int64_t m = 0; m < products; ++m, above += n) {
#pragma GCC unroll 8
    for (int e = 0; e < count; ++e) sum[e] -= above[e] * factors[m];
  }
#pragma GCC unroll 8
  for (int e = 0; e < count; ++e) elements[e] = sum[e];
}

// Elements of one column of A, in `count` rows that begin at `row`, less the products of their factors and of the
// column's rows above.
template <class T, int count>
[[gnu::always_inline]] inline void reduce_column(Lanes<T>* row, const Lanes<T>* above, std::int64_t n,
                                                 std::int64_t products) {
  Lanes<T> sum[count];
#pragma GCC unroll 8
  for (int e = 0; e < count; ++e) sum[e] = row[e * n + products];
  for (std::int64_t m = 0; m < products; ++m, above += n) {
    const Lanes<T> shared = *above;
#pragma GCC unroll 8
    for (int e = 0; e < count; ++e) sum[e] -= row[e * n + m] * shared;
  }
#pragma GCC unroll 8
  for (int e = 0; e < count; ++e) row[e * n + products] = sum[e];
}

// Solve A x = b for `sides` right-hand sides: A is (n, n), b (n, sides), row-major, and both are overwritten, b with x.
// Returns the lanes whose matrix is singular; x is NaN there. In the order of Crout: sums stay in registers.
template <class T>
Mask<T> solve(Lanes<T>* a, Lanes<T>* b, std::int64_t n, std::int64_t sides) {
  using V = Lanes<T>;
  Mask<T> singular{};
  for (std::int64_t k = 0; k < n; ++k) {
    V* const column = a + k * n + k;
    std::int64_t r = k;
    for (; r + sums <= n; r += sums) reduce_column<T, sums>(a + r * n, a + k, n, k);
    for (; r + 2 <= n; r += 2) reduce_column<T, 2>(a + r * n, a + k, n, k);
    if (r < n) reduce_column<T, 1>(a + r * n, a + k, n, k);
    V largest = V{};
    for (std::int64_t i = 1; i < n - k; ++i) {
      const V size = absolute(column[i * n]);
      largest = size > largest ? size : largest;
    }
    const Mask<T> small = absolute(*column) < T(0.1) * largest;
    if (any(small)) exchange<T>(a, b, n, sides, k, small);
    singular |= *column == T(0);
    const Pivot<T> pivot(*column);
    for (std::int64_t i = k + 1; i < n; ++i) {
      const V factor = a[i * n + k] = pivot.divide(a[i * n + k]);
      for (std::int64_t j = 0; j < sides; ++j) b[i * sides + j] -= factor * b[k * sides + j];
    }
    V* const row = a + k * n;
    std::int64_t j = k + 1;
    for (; j + sums <= n; j += sums) reduce_row<T, sums>(row + j, row, a + j, n, k);
    for (; j + 2 <= n; j += 2) reduce_row<T, 2>(row + j, row, a + j, n, k);
    if (j < n) reduce_row<T, 1>(row + j, row, a + j, n, k);
  }
  for (std::int64_t k = n; k-- > 0;) {
    const Pivot<T> pivot(a[k * n + k]);
    for (std::int64_t j = 0; j < sides; ++j) b[k * sides + j] = pivot.divide(b[k * sides + j]);
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < sides; ++j) b[i * sides + j] -= a[i * n + k] * b[k * sides + j];
  }
  if (any(singular))
    for (std::int64_t i = 0; i < n * sides; ++i) set_where(singular, b[i], all_of<V>(no_number<double>));
  return singular;
}

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
