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
      x = swapped ? y : x;
      y = swapped ? old : y;
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

// Elements of a column or row of A, `apart` from one to the next, less the products of the factors before them: factors
// of an element stand `step` apart, and all meet the same ones of the other factor, `other_step` apart.
template <class T, int count>
[[gnu::always_inline]] inline void reduce(Lanes<T>* element, std::int64_t apart, const Lanes<T>* factor,
                                          std::int64_t step, const Lanes<T>* other, std::int64_t other_step,
                                          std::int64_t products) {
  Lanes<T> sum[count];
#pragma GCC unroll 8
  for (int e = 0; e < count; ++e) sum[e] = element[e * apart];
  for (std::int64_t m = 0; m < products; ++m) {
    const Lanes<T> shared = other[m * other_step];
#pragma GCC unroll 8
    for (int e = 0; e < count; ++e) sum[e] -= factor[e * apart + m * step] * shared;
  }
#pragma GCC unroll 8
  for (int e = 0; e < count; ++e) element[e * apart] = sum[e];
}

template <class T>
[[gnu::always_inline]] inline void reduce_all(std::int64_t elements, Lanes<T>* element, std::int64_t apart,
                                              const Lanes<T>* factor, std::int64_t step, const Lanes<T>* other,
                                              std::int64_t other_step, std::int64_t products) {
  if (products == 0) return;
  std::int64_t e = 0;
  for (; e + 6 <= elements; e += 6)
    reduce<T, 6>(element + e * apart, apart, factor + e * apart, step, other, other_step, products);
  for (; e + 2 <= elements; e += 2)
    reduce<T, 2>(element + e * apart, apart, factor + e * apart, step, other, other_step, products);
  if (e < elements) reduce<T, 1>(element + e * apart, apart, factor + e * apart, step, other, other_step, products);
}

// Solve A x = b for `sides` right-hand sides: A is (n, n), b (n, sides), row-major, and both are overwritten, b with x.
// Returns the lanes whose matrix is singular; x is NaN there. In the order of Crout: sums stay in registers.
template <class T>
Mask<T> solve(Lanes<T>* a, Lanes<T>* b, std::int64_t n, std::int64_t sides) {
  using V = Lanes<T>;
  Mask<T> singular{};
  for (std::int64_t k = 0; k < n; ++k) {
    V* const column = a + k * n + k;
    reduce_all<T>(n - k, column, n, a + k * n, 1, a + k, n, k);
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
    reduce_all<T>(n - k - 1, a + k * n + k + 1, 1, a + k + 1, n, a + k * n, 1, k);
  }
  for (std::int64_t k = n; k-- > 0;) {
    const Pivot<T> pivot(a[k * n + k]);
    for (std::int64_t j = 0; j < sides; ++j) b[k * sides + j] = pivot.divide(b[k * sides + j]);
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < sides; ++j) b[i * sides + j] -= a[i * n + k] * b[k * sides + j];
  }
  if (any(singular))
    for (std::int64_t i = 0; i < n * sides; ++i) b[i] = singular ? all_of<V>(no_number<double>) : b[i];
  return singular;
}

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
