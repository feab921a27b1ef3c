// Pivots of both forms of the LU factorisation (lu.h).
#pragma once

#include <limits>

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

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
