// Scan of results for values that are not finite, which copies them in the same pass.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace neml2_capi::model {

// An exponent of all ones, which infinite values and NaN have, carries into the sign when one is added to it. What is
// seen of 16 bytes at a time is kept for four of them apart, so that none waits for the one before it.
template <class Scalar>
class FiniteScan {
  using Bits = std::conditional_t<sizeof(Scalar) == 8, std::uint64_t, std::uint32_t>;

 public:
  // Scans `count` values, and copies them to `to` unless that is null. Tells whether all of them are finite.
  static bool run(const Scalar* values, std::int64_t count, Scalar* to = nullptr) {
    return to ? FiniteScan().scan<true>(values, count, to) : FiniteScan().scan<false>(values, count, to);
  }

 private:
  static constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<Scalar>::infinity());
  static constexpr Bits one = exponent & (~exponent + 1);
  using Lanes [[gnu::vector_size(16)]] = Bits;
  static constexpr std::int64_t width = 16 / sizeof(Scalar);

  template <bool copies>
  bool scan(const Scalar* values, std::int64_t count, Scalar* to) {
    Lanes signs[4] = {};
    Bits rest = 0;
    std::int64_t i = 0;
    for (; i + 4 * width <= count; i += 4 * width)
#pragma GCC unroll 4
      for (std::int64_t k = 0; k < 4; ++k) step<copies>(values, to, i + k * width, signs[k]);
    for (; i < count; ++i) step<copies>(values, to, i, rest);
    const Lanes all = (signs[0] | signs[1]) | (signs[2] | signs[3]);
    for (std::int64_t k = 0; k < width; ++k) rest |= all[k];
    return rest >> (8 * sizeof(Bits) - 1) == 0;
  }

  template <bool copies, class Some>
  static void step(const Scalar* from, Scalar* to, std::int64_t at, Some& signs) {
    Some some;
    std::memcpy(&some, from + at, sizeof some);
    if constexpr (copies) std::memcpy(to + at, &some, sizeof some);
    signs |= (some & exponent) + one;
  }
};

}  // namespace neml2_capi::model
