// x ** y as 2 ** (y log2 x), with the logarithm and its product with y in twice the working precision: the error stays
// well below a unit in the last place. Every lane is computed alike, without tables and without branches. Cases outside
// of the formula (zeros, infinities, no numbers, the sign of negative bases) are mended lane by lane.
#pragma once

#include "capi/lanes/simd.h"

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

using Doubles = Lanes<double>;
using Bits = Lanes<std::uint64_t>;

// a b - product, exactly.
inline Doubles product_error(const Doubles& a, const Doubles& b, const Doubles& product) {
  if constexpr (has_fma) return multiply_add(a, b, -product);
  // Dekker's product: halves of at most 27 bits, whose products are exact.
  const Doubles a_scaled = a * 0x1.0000002p27, b_scaled = b * 0x1.0000002p27;
  const Doubles a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
  const Doubles a_low = a - a_high, b_low = b - b_high;
  return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

// Sum of two numbers, `low` being small against `high`.
struct Double2 {
  Doubles high, low;
};

// log2 x for 0 < x < infinity: e + log2 m where x = 2^e m and sqrt(1/2) <= m < sqrt(2), and
// log2 m = 2 / ln 2 (s + s^3 / 3 + s^5 / 5 + ...) where s = (m - 1) / (m + 1).
inline Double2 log2(Doubles x) {
  constexpr std::uint64_t one = std::uint64_t{1023} << 52, below_sqrt_half = 0x3fe6a09e667f3bcd;
  const auto subnormal = x < 0x1p-1022;
  x = subnormal ? x * 0x1p54 : x;
  const Bits bits = __builtin_bit_cast(Bits, x), biased = bits + (one - below_sqrt_half);
  const Doubles m = __builtin_bit_cast(Doubles, bits - (biased & (std::uint64_t{0xfff} << 52)) + one);
  // The exponent, an integer, in the last bits of 2^52.
  const Doubles shifted = __builtin_bit_cast(Doubles, (biased >> 52) | __builtin_bit_cast(std::uint64_t, 0x1p52));
  const Doubles e = shifted - (subnormal ? broadcast(0x1p52 + 1023 + 54) : broadcast(0x1p52 + 1023));

  // s = s.high + s.low
  const Doubles f = m - 1.0, d = 2.0 + f, d_low = f - (d - 2.0), reciprocal = 1.0 / d;
  const Doubles s = f * reciprocal;
  const Doubles p = s * d;
  const Doubles remainder = has_fma ? subtract_product(f, s, d) : (f - p) - product_error(s, d, p);
  const Doubles s_low = subtract_product(remainder, s, d_low) * reciprocal;
  const Doubles z = s * s, z_low = product_error(s, s, z) + 2.0 * s * s_low;

  // 2 / ln 2 (1/5 + z / 7 + ...) on 0 <= z <= 0.0295, interpolated at Chebyshev's points.
  const Doubles z2 = z * z, z4 = z2 * z2;
  const auto pair = [&](double c0, double c1) { return multiply_add(broadcast(c1), z, broadcast(c0)); };
  const Doubles tail = multiply_add(multiply_add(pair(0x1.59e08811ee6b3p-3, 0x1.5a60ae4e0bdd7p-3), z2,
                                                 pair(0x1.c68f2f01d5108p-3, 0x1.89fed27be41bep-3)),
                                    z4,
                                    multiply_add(pair(0x1.484b13d79c3b6p-2, 0x1.0c9a84bf5081cp-2), z2,
                                                 pair(0x1.2776c50ef9bfep-1, 0x1.a61762a7adfa8p-2)));

  // u = 2 / (3 ln 2) + z tail, v = 2 / ln 2 + z u, log2 m = s v, each as a sum of two.
  constexpr double c0 = 0x1.71547652b82fep+1, c0_low = 0x1.777d0ffda0d24p-55;
  constexpr double c1 = 0x1.ec709dc3a03fdp-1, c1_low = 0x1.d27f05548af0cp-55;
  const Doubles w = z * tail, u = c1 + w, u_low = (w - (u - c1)) + c1_low;
  const Doubles t = z * u, t_low = multiply_add(z_low, u, multiply_add(z, u_low, product_error(z, u, t)));
  const Doubles v = c0 + t, v_low = (t - (v - c0)) + (t_low + c0_low);
  const Doubles l = s * v, l_low = multiply_add(s_low, v, multiply_add(s, v_low, product_error(s, v, l)));
  const Doubles high = e + l;
  return {high, (l - (high - e)) + l_low};
}

// Returns 2 to the integer in the last bits of t, which has a multiple of 2^52 added to it.
inline Doubles power_of_two(const Doubles& t) {
  return __builtin_bit_cast(Doubles, (__builtin_bit_cast(Bits, t) + 1023) << 52);
}

// 2 ** (x.high + x.low)
inline Doubles exp2(Double2 x) {
  // The result is zero or infinite beyond.
  const auto beyond = absolute(x.high) > 1080.0;
  const Doubles p = beyond ? (x.high > 0.0 ? broadcast(1100.0) : broadcast(-1100.0)) : x.high;
  const Doubles p_low = beyond ? Doubles{} : x.low;
  constexpr double to_integer = 0x1.8p52;  // added, it rounds to an integer
  const Doubles n = (p + to_integer) - to_integer, r = p - n;

  // 1 + r ln 2 + r^2 q(r) on |r| <= 1/2, q interpolated at Chebyshev's points.
  const Doubles r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
  const auto pair = [&](double a, double b) { return multiply_add(broadcast(b), r, broadcast(a)); };
  const auto four = [&](const Doubles& a, const Doubles& b) { return multiply_add(b, r2, a); };
  const Doubles q01 = pair(0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0c2p-5);
  const Doubles q23 = pair(0x1.3b2ab6fba4e78p-7, 0x1.5d87fe78a5276p-10);
  const Doubles q45 = pair(0x1.430912f86bf52p-13, 0x1.ffcbfc670dcd4p-17);
  const Doubles q67 = pair(0x1.62c022401b97dp-20, 0x1.b524fae627834p-24);
  const Doubles q89 = pair(0x1.e4cf1cd08d4b8p-28, 0x1.e9d3fe3952179p-32);
  const Doubles q8 = multiply_add(broadcast(0x1.c48f769ad2c46p-36), r2, q89);
  const Doubles q = multiply_add(q8, r8, multiply_add(four(q45, q67), r4, four(q01, q23)));

  constexpr double ln2 = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;
  const Doubles a = r * ln2, a_low = multiply_add(r, broadcast(ln2_low), product_error(r, broadcast(ln2), a));
  const Doubles sum = 1.0 + a, sum_low = multiply_add(r2, q, (a - (sum - 1.0)) + a_low);
  const Doubles value = sum + multiply_add(p_low * ln2, sum + sum_low, sum_low);

  // Two factors, since 2^n may be beyond the range where the result is not.
  const Doubles half = n * 0.5 + to_integer;
  return value * power_of_two(half) * power_of_two((n - (half - to_integer)) + to_integer);
}

// x ** y if x is not positive and finite, or y is not finite; `magnitude` is |x| ** y.
inline double unusual_power(double x, double y, double magnitude) {
  constexpr double infinity = __builtin_inf();
  // All but negative bases with finite exponents have one answer, which the C library knows.
  if (!(x < 0.0 && x > -infinity && __builtin_fabs(y) < infinity)) return __builtin_pow(x, y);
  if (__builtin_fabs(y) >= 0x1p53) return magnitude;
  const auto integer = static_cast<std::int64_t>(y);
  if (static_cast<double>(integer) != y) return __builtin_nan("");
  return integer % 2 != 0 ? -magnitude : magnitude;
}

inline Doubles power(const Doubles& x, const Doubles& y) {
  // No exponent beyond 2^128 makes a difference, but its product with the logarithm could overflow.
  constexpr double most = 0x1p128;
  const Doubles within = y > most ? broadcast(most) : y < -most ? broadcast(-most) : y;
  const Double2 l = log2(absolute(x));
  const Doubles p = l.high * within;
  Doubles result = exp2({p, multiply_add(l.low, within, product_error(l.high, within, p))});
  const auto usual = (x > 0.0) & (x < __builtin_inf()) & (absolute(y) < __builtin_inf());
  if (any(~usual))
    for (int i = 0; i < lane_count<double>; ++i)
      if (!usual[i]) result[i] = unusual_power(x[i], y[i], result[i]);
  return result;
}

// Loads `count` elements as doubles; further lanes repeat the first one.
template <class T>
Doubles load_as_doubles(const T* from, std::int64_t stride, std::int64_t count) {
  if constexpr (std::is_same_v<T, double>)
    if (count >= lane_count<double>) return load_strided(from, stride);
  if (stride == 0 || count == 1) return broadcast(static_cast<double>(*from));
  Doubles v;
  for (int i = 0; i < lane_count<double>; ++i) v[i] = static_cast<double>(from[(i < count ? i : 0) * stride]);
  return v;
}

// Computes powers of floats as powers of doubles, rounded.
template <class T>
void power(std::int64_t count, T* out, std::int64_t out_stride, const T* base, std::int64_t base_stride,
           const T* exponent, std::int64_t exponent_stride) {
  constexpr std::int64_t width = lane_count<double>;
  for (std::int64_t first = 0; first < count; first += width) {
    const std::int64_t n = count - first < width ? count - first : width;
    const Doubles result = power(load_as_doubles(base + first * base_stride, base_stride, n),
                                 load_as_doubles(exponent + first * exponent_stride, exponent_stride, n));
    if constexpr (std::is_same_v<T, double>)
      if (n == width && out_stride == 1) {
        store(out + first, result);
        continue;
      }
    for (int i = 0; i < n; ++i) out[(first + i) * out_stride] = static_cast<T>(result[i]);
  }
}

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
