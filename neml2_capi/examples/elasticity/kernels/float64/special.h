/* More functions of lanes: logarithms of other bases, inverse hyperbolic ones, error functions, remainders.
 *
 * Made as those of powers.h. Largest errors that the tests found: log2, log10 and exp2 0.6 ulp, hypot 1.1,
 * erf 1.1, asinh, acosh and atanh 3, erfc and the normal distribution 3. Rounding and remainders are exact.
 *
 * Sources: exp(x^2) erfc(x) as a polynomial of (x - 4) / (x + 4) over 1 + 2 x (Shepherd and Laframboise,
 * Mathematics of Computation 36, 1981); interpolation at Chebyshev nodes.
 */
#ifndef NEML2_KERNEL_SPECIAL_H
#define NEML2_KERNEL_SPECIAL_H

#include "trigonometry.h"

/* log(x) over the logarithm of a base, whose reciprocal is high + low. */
INLINE wide logarithm_to(wide x, double high, double low) {
  pair inverse;
  inverse.high = wide_fill(high);
  inverse.low = wide_fill(low);
  const pair value = product_of(logarithm(x), inverse);
  wide result = value.high + value.low;
  result = wide_where(x == 0, wide_fill(-__builtin_inf()), result);
  result = wide_where(x < 0, wide_fill(__builtin_nan("")), result);
  return wide_where((x != x) | (x == __builtin_inf()), x, result);
}

FUNCTION wide wide_log2(wide x) { return logarithm_to(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56); }

FUNCTION wide wide_log10(wide x) { return logarithm_to(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57); }

FUNCTION wide wide_exp2(wide x) {
  const wide ln2 = wide_fill(0x1.62e42fefa39efp-1);
  const wide bounded = wide_where(x > 1100.0, wide_fill(1100.0), wide_where(x < -1100.0, wide_fill(-1100.0), x));
  pair argument;
  argument.high = bounded * ln2;
  argument.low = product_error(bounded, ln2, argument.high) + bounded * 0x1.abc9e3b39803fp-56;
  return exponential(argument, 0);
}

#define LN2 0x1.62e42fefa39efp-1

FUNCTION wide wide_asinh(wide x) {
  const wide size = wide_absolute(x);
  const wide_mask far = size > 0x1p28;
  const wide inside = wide_where(far, wide_fill(1.0), size), z = inside * inside;
  const wide near = wide_log1p(inside + z / (1.0 + wide_square_root(1.0 + z)));
  return with_sign(wide_where(far, wide_log(size) + LN2, near), x);
}

FUNCTION wide wide_acosh(wide x) {
  const wide_mask far = x > 0x1p28;
  const wide over = wide_where(far, wide_fill(1.0), x) - 1.0;
  const wide near = wide_log1p(over + wide_square_root(2.0 * over + over * over));
  return wide_where(x < 1.0, wide_fill(__builtin_nan("")), wide_where(far, wide_log(x) + LN2, near));
}

FUNCTION wide wide_atanh(wide x) {
  const wide size = wide_absolute(x);
  return with_sign(0.5 * wide_log1p(2.0 * size / (1.0 - size)), x);
}

FUNCTION wide wide_hypot(wide x, wide y) {
  const wide infinity = wide_fill(__builtin_inf());
  const wide a = wide_absolute(x), b = wide_absolute(y), large = wide_where(a > b, a, b);
  const wide_mask huge = large > 0x1p500, tiny = large < 0x1p-450;
  const wide scale = wide_where(huge, wide_fill(0x1p-600), wide_where(tiny, wide_fill(0x1p600), wide_fill(1.0)));
  const wide back = wide_where(huge, wide_fill(0x1p600), wide_where(tiny, wide_fill(0x1p-600), wide_fill(1.0)));
  const wide u = a * scale, v = b * scale;
  const wide result = wide_square_root(u * u + v * v) * back;
  return wide_where((a == infinity) | (b == infinity), infinity, result);
}

/* x less a multiple of y, with the sign of x, for one number each: exact, as in C. */
FUNCTION double modulo(double x, double y) {
  union {
    double number;
    uint64_t bits;
  } a = {x}, b = {y}, made;
  const uint64_t sign = a.bits & 0x8000000000000000;
  uint64_t m = a.bits & 0x7fffffffffffffff, n = b.bits & 0x7fffffffffffffff;
  if (m >= 0x7ff0000000000000 || n > 0x7ff0000000000000 || n == 0) return (x * y) / (x * y);
  if (m < n) return x;
  int p = (int)(m >> 52), q = (int)(n >> 52);
  m = p ? (m & 0x000fffffffffffff) | 0x0010000000000000 : m;
  n = q ? (n & 0x000fffffffffffff) | 0x0010000000000000 : n;
  p = p ? p : 1;
  q = q ? q : 1;
  m %= n;
  while (p > q && m) {
    const int shift = p - q < 11 ? p - q : 11;
    m = (m << shift) % n;
    p -= shift;
  }
  while (m && m < 0x0010000000000000 && q > 1) {
    m <<= 1;
    q -= 1;
  }
  made.bits = sign | (m < 0x0010000000000000 ? m : (m & 0x000fffffffffffff) | (uint64_t)q << 52);
  return made.number;
}

FUNCTION wide wide_fmod(wide x, wide y) {
  wide result;
  for (int l = 0; l < LANES; ++l) result[l] = modulo(x[l], y[l]);
  return result;
}

INLINE wide wide_copysign(wide x, wide y) { return with_sign(wide_absolute(x), y); }

/* To the nearest integer, half to even; and toward 0. */
INLINE wide wide_round(wide x) {
  const wide size = wide_absolute(x), near = (size + 0x1p52) - 0x1p52;
  return wide_where(size < 0x1p52, with_sign(near, x), x);
}

INLINE wide wide_trunc(wide x) {
  const wide size = wide_absolute(x), near = (size + 0x1p52) - 0x1p52;
  const wide down = wide_where(near > size, near - 1.0, near);
  return wide_where(size < 0x1p52, with_sign(down, x), x);
}

/* erf(x) for |x| <= 1. */
INLINE wide error_near(wide x) {
  static const double terms[] = {
      -0x1.812746b0379e7p-2, 0x1.ce2f21a042bd7p-4, -0x1.b82ce312882f8p-6, 0x1.565bcd0e434bbp-8,
      -0x1.c02db3f4735cbp-11, 0x1.f9a324ddf0f34p-14, -0x1.f4d21efdafc7dp-17, 0x1.b9e2333703249p-20,
      -0x1.5f39372686202p-23, 0x1.f8d476ab1a455p-27, -0x1.3c1e91b012003p-30, 0x1.0f8a27a51ad26p-34};
  const wide z = x * x;
  wide tail = wide_fill(terms[11]);
  for (int k = 10; k >= 0; --k) tail = terms[k] + z * tail;
  return x * (0x1.20dd750429b6dp+0 + (z * tail + 0x1.1ae3a914fed80p-56));
}

/* erfc(z) for z >= 1/4, whose square is given as a pair. */
INLINE wide error_far(wide z, pair square) {
  static const double terms[] = {
      0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a28fp-3, 0x1.f7f5df66fd497p-7, 0x1.16ecefcfa54b0p-4,
      -0x1.9ddb23c3e76d4p-4, 0x1.7fee004e0fd45p-4, -0x1.0fb06dfe7374dp-4, 0x1.3079edf6d0eecp-5,
      -0x1.0962387c421ddp-6, 0x1.49c67273177bdp-8, -0x1.8d4aa28967097p-11, -0x1.a1df1c6c55fc6p-13,
      0x1.3be0e68166234p-13, -0x1.99597cd9bde23p-16, -0x1.78a60cbe4e1a0p-17, 0x1.7f1f8bfdf220dp-18,
      0x1.4209a1dcca76ep-22, -0x1.b9da3ae0173d7p-21, 0x1.1ecd3221ee53dp-24, 0x1.c7573d1f17510p-24,
      -0x1.a27397ef8e306p-27, -0x1.6b9b31cb90e93p-27, 0x1.7e7b507fe68bbp-36};
  const wide t = (z - 4.0) / (z + 4.0);
  wide value = wide_fill(terms[22]);
  for (int k = 21; k >= 0; --k) value = terms[k] + t * value;
  pair argument;
  argument.high = -square.high;
  argument.low = -square.low;
  return exponential(argument, 0) * (value / (1.0 + 2.0 * z));
}

INLINE wide within(wide size, double least, double most) {
  return wide_where(size > most, wide_fill(most), wide_where(size > least, size, wide_fill(least)));
}

INLINE wide error_complement(wide size) {
  const wide z = within(size, 0.25, 28.0);
  pair square;
  square.high = z * z;
  square.low = product_error(z, z, square.high);
  return error_far(z, square);
}

FUNCTION wide wide_erf(wide x) {
  const wide size = wide_absolute(x);
  const wide near = error_near(wide_where(size < 1.0, x, wide_fill(0.0)));
  const wide far = with_sign(1.0 - error_complement(size), x);
  return wide_where(size < 1.0, near, wide_where(x != x, x, far));
}

FUNCTION wide wide_erfc(wide x) {
  const wide size = wide_absolute(x);
  const wide near = 1.0 - error_near(wide_where(size < 0.5, x, wide_fill(0.0)));
  const wide tail = error_complement(size);
  const wide far = wide_where(x < 0, 2.0 - tail, tail);
  return wide_where(size < 0.5, near, wide_where(x != x, x, far));
}

/* The normal distribution: erfc(-x / sqrt(2)) / 2, with the square of x itself. */
FUNCTION wide wide_ndtr(wide x) {
  const wide size = wide_absolute(x), half = wide_fill(0.5);
  const wide z = within(size, 0.375, 39.0);
  const wide root = wide_fill(0x1.6a09e667f3bcdp-1);
  pair square;
  square.high = z * z;
  square.low = 0.5 * product_error(z, z, square.high);
  square.high *= 0.5;
  const wide tail = 0.5 * error_far(z * root, square);
  const wide near = half + 0.5 * error_near(wide_where(size < 0.5, x, wide_fill(0.0)) * root);
  const wide far = wide_where(x < 0, tail, 1.0 - tail);
  return wide_where(size < 0.5, near, wide_where(x != x, x, far));
}

#endif
