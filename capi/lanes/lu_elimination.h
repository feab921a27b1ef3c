// Pivots, and rows that lose multiples of pivot rows: shared by the forms of the LU factorisation (lu.h).
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "capi/lanes/simd.h"

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

template <class T>
inline constexpr T no_number = std::numeric_limits<T>::quiet_NaN();

// Division by a pivot, or by one in every lane: by its reciprocal if that is accurate, as in LAPACK.
template <class T, class V>
class Pivot {
 public:
  // A zero pivot counts as 1: all elements below it are zero, too.
  explicit Pivot(const V& value) : Pivot(value, invert(value == V{} ? V{} + T(1) : value)) {}
  // A pivot whose reciprocal is known.
  Pivot(const V& value, const V& reciprocal)
      : value_(value), reciprocal_(reciprocal), accurate_(!any(reciprocal == V{})) {}

  const V& reciprocal() const { return reciprocal_; }

  template <class X>
  X divide(const X& x) const {
    const X quotient = x * reciprocal_;
    return accurate_ ? quotient : reciprocal_ != V{} ? quotient : x / value_;
  }

 private:
  static constexpr T smallest = std::numeric_limits<T>::min();

  // Returns the reciprocal, or 0 if the value or its reciprocal has lost digits to underflow, or is not a number.
  static V invert(const V& value) {
    const V size = absolute(value);
    return ((size >= smallest) & (size <= T(1) / smallest)) ? T(1) / value : V{};
  }

  V value_;
  V reciprocal_;
  bool accurate_;
};

// Subtracts from rows of `size` elements, `stride` apart, their multiples of the pivot rows, one after the other.
template <class T, int rows, int pivots>
void eliminate(T* to, const T* pivot_rows, std::int64_t stride, std::int64_t size,
               const Lanes<T> (&factors)[rows][pivots]) {
#pragma GCC unroll 2
  for (std::int64_t j = 0; j < size; j += lane_count<T>) {
    Lanes<T> subtracted[pivots];
#pragma GCC unroll 2
    for (int p = 0; p < pivots; ++p) subtracted[p] = load(pivot_rows + p * stride + j);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      Lanes<T> element = load(to + r * stride + j);
#pragma GCC unroll 2
      for (int p = 0; p < pivots; ++p) element = subtract_product(element, factors[r][p], subtracted[p]);
      store(to + r * stride + j, element);
    }
  }
}

// Calls f(i, number of rows) for groups of rows to compute together.
template <class F>
[[gnu::always_inline]] inline void in_groups(std::int64_t i, std::int64_t end, F&& f) {
  for (; i + 4 <= end; i += 4) f(i, std::integral_constant<int, 4>{});
  for (; i + 2 <= end; i += 2) f(i, std::integral_constant<int, 2>{});
  for (; i < end; ++i) f(i, std::integral_constant<int, 1>{});
}

// Returns n rounded up to whole vectors.
template <class T>
std::int64_t padded(std::int64_t n) {
  return (n + lane_count<T> - 1) / lane_count<T> * lane_count<T>;
}

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
