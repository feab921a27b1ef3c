/* Powers, exponentials, logarithms and hyperbolic functions of lanes.
 *
 * All are made of sums, products, divisions and selections in one order, without branches on values, so that
 * their results have the same bits on every processor, from every compiler, and in every lane. A fused
 * multiply-add appears in one place, product_error(), where it gives an exact result, the same as the
 * replacement by multiplications for processors that have none.
 *
 * The polynomials interpolate at Chebyshev nodes; their coefficients were computed with 60 digits. Largest
 * errors that the tests found: pow, exp and log 0.6 ulp, log1p 1, sinh and cosh 1.5, tanh 2, expm1 2.5.
 *
 * Sources: two-sum and two-product of Knuth and Dekker (Dekker, Numerische Mathematik 18, 1971); reduction of
 * arguments of Cody and Waite (Software Manual for the Elementary Functions, 1980); the logarithm as
 * 2 artanh((m - 1) / (m + 1)) in pairs of numbers (Muller et al., Handbook of Floating-Point Arithmetic,
 * 2nd ed., chapters 4 and 10).
 */
#ifndef NEML2_KERNEL_POWERS_H
#define NEML2_KERNEL_POWERS_H

#include "lanes.h"

/* A number as the sum of two: `low` is below the last digit of `high`. */
typedef struct pair {
  wide high, low;
} pair;

#define ROUND_TO_INTEGER 0x1.8p52     /* adding it leaves the nearest integer in the last bits */
#define LN2_HIGH 0x1.62e42fefa2000p-1 /* 40 bits: its product with an exponent is exact */
#define LN2_LOW 0x1.9ef35793c7673p-41

INLINE wide wide_fill(double value) { return value - (wide){0}; }

INLINE wide wide_where(wide_mask condition, wide value, wide other) {
  return (wide)((condition & (wide_mask)value) | (~condition & (wide_mask)other));
}

INLINE wide wide_absolute(wide x) { return (wide)((wide_mask)x & INT64_MAX); }

INLINE wide wide_square_root(wide x) {
  wide result;
  for (int l = 0; l < LANES; ++l) result[l] = __builtin_sqrt(x[l]);
  return result;
}

/* x * y - product, exactly, where product is x * y rounded. */
INLINE wide product_error(wide x, wide y, wide product) {
#if (defined(__FMA__) || defined(__aarch64__)) && !defined(NEML2_KERNEL_NO_FMA)
  wide result;
  for (int l = 0; l < LANES; ++l) result[l] = __builtin_fma(x[l], y[l], -product[l]);
  return result;
#else
  const wide a = x * 134217729.0, b = y * 134217729.0; /* 2^27 + 1 */
  const wide x1 = a - (a - x), x2 = x - x1;
  const wide y1 = b - (b - y), y2 = y - y1;
  return ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2;
#endif
}

/* x + y as a pair, where |x| >= |y| or x = 0. */
INLINE pair sum_of(wide x, wide y) {
  pair result;
  result.high = x + y;
  result.low = y - (result.high - x);
  return result;
}

INLINE pair product_of(pair x, pair y) {
  pair result;
  result.high = x.high * y.high;
  result.low = product_error(x.high, y.high, result.high) + (x.high * y.low + x.low * y.high);
  return result;
}

/* The logarithm of a positive finite number; something finite for all others. */
INLINE pair logarithm(wide x) {
  const wide_mask tiny = x < 0x1p-1022;
  x = wide_where(tiny, x * 0x1p54, x);
  /* x = 2^exponent m, sqrt(1/2) <= m < sqrt(2) */
  const wide_bits shifted = (wide_bits)x + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
  const wide m = (wide)((shifted & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
  const wide biased = (wide)((shifted >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0);
  const wide exponent = biased - wide_where(tiny, wide_fill(54.0), wide_fill(0.0));
  /* s = (m - 1) / (m + 1), log(m) = 2 s + s^3 (2/3 + 2/5 s^2 + ...) */
  const wide over = m - 1.0, under = m + 1.0, under_low = m - (under - 1.0);
  const wide inverse = 1.0 / under;
  pair s;
  s.high = over * inverse;
  const wide back = s.high * under;
  s.low = (((over - back) - product_error(s.high, under, back)) - s.high * under_low) * inverse;
  const pair z = product_of(s, s);
  const wide w = z.high, w2 = w * w, w4 = w2 * w2;
  const wide tail =
      ((0x1.999999999999ap-2 + 0x1.2492492492491p-2 * w) + w2 * (0x1.c71c71c71cfdbp-3 + 0x1.745d17451340fp-3 * w)) +
      w4 * (((0x1.3b13b1bc80894p-3 + 0x1.1110dfaa5db09p-3 * w) +
             w2 * (0x1.e1f7fb3a8772dp-4 + 0x1.ac4a7ad315f82p-4 * w)) +
            w4 * 0x1.b8d4aab2052bcp-4);
  pair factor = sum_of(wide_fill(0x1.5555555555555p-1), w * tail);
  factor.low += 0x1.5555555555555p-55;
  const pair cubic = product_of(product_of(s, z), factor);
  const pair fraction = sum_of(2.0 * s.high, cubic.high);
  pair result = sum_of(exponent * LN2_HIGH, fraction.high);
  result.low += exponent * LN2_LOW + (fraction.low + (2.0 * s.low + cubic.low));
  return sum_of(result.high, result.low);
}

/* 2^k x for an integer |k| < 2000, rounded once. */
INLINE wide scaled(wide x, wide k) {
  const wide half = k * 0.5 + ROUND_TO_INTEGER;
  const wide rest = (k - (half - ROUND_TO_INTEGER)) + ROUND_TO_INTEGER;
  x *= (wide)(((wide_bits)half + 1023) << 52);
  return x * (wide)(((wide_bits)rest + 1023) << 52);
}

/* 2^shift exp(x) for |x.high| < 1000. */
INLINE wide exponential(pair x, double shift) {
  const wide k = (x.high * 0x1.71547652b82fep+0 + ROUND_TO_INTEGER) - ROUND_TO_INTEGER;
  const wide near = x.high - k * LN2_HIGH;
  const wide rest = k * LN2_LOW - x.low;
  const wide r = near - rest;
  const wide r_low = (near - r) - rest;
  const wide r2 = r * r, r4 = r2 * r2;
  const wide tail =
      ((0x1.5555555555556p-3 + 0x1.5555555555555p-5 * r) + r2 * (0x1.11111111109b3p-7 + 0x1.6c16c16c167e1p-10 * r)) +
      r4 * (((0x1.a01a01a7c41d5p-13 + 0x1.a01a01a47b054p-16 * r) +
             r2 * (0x1.71de0dae63bb3p-19 + 0x1.27e4e1f48534fp-22 * r)) +
            r4 * (0x1.af38a9b0ec855p-26 + 0x1.1f66df7fca49fp-29 * r));
  const pair one = sum_of(wide_fill(1.0), r);
  const wide value = one.high + (one.low + (r_low * one.high + r2 * (0.5 + r * tail)));
  return scaled(value, k + shift);
}

/* A sum with 2^52 has no fraction, up to 2^53. */
INLINE wide_mask is_integer(wide x) {
  const wide size = wide_absolute(x);
  return (size >= 0x1p52) | (((size + 0x1p52) - 0x1p52) == size);
}

/* The bit of the sign where a condition holds. */
INLINE wide_bits sign_where(wide_mask condition) { return (wide_bits)condition & 0x8000000000000000; }

FUNCTION wide wide_pow(wide x, wide y) {
  const wide infinity = wide_fill(__builtin_inf()), zero = wide_fill(0.0), one = wide_fill(1.0);
  const wide base = wide_absolute(x), size = wide_absolute(y);
  const pair log_base = logarithm(base);
  const wide far = wide_where(y > 0, wide_fill(0x1p65), wide_fill(-0x1p65));
  const wide bounded = wide_where(size > 0x1p65, far, y);
  pair product;
  product.high = bounded * log_base.high;
  product.low = product_error(bounded, log_base.high, product.high) + bounded * log_base.low;
  const wide limit = wide_where(product.high > 0, wide_fill(800.0), wide_fill(-800.0));
  const wide_mask beyond = wide_absolute(product.high) > 800.0;
  product.high = wide_where(beyond, limit, product.high);
  product.low = wide_where(beyond, zero, product.low);
  wide result = exponential(product, 0);
  result = wide_where(base == 0, wide_where(y > 0, zero, infinity), result);
  result = wide_where(base == infinity, wide_where(y > 0, infinity, zero), result);
  const wide_mask negative = (wide_mask)x < 0, whole = is_integer(y);
  const wide_mask odd = whole & ~is_integer(0.5 * y);
  result = (wide)((wide_bits)result | sign_where(negative & odd));
  result = wide_where((x < 0) & (base < infinity) & ~whole, wide_fill(__builtin_nan("")), result);
  result = wide_where((x != x) | (y != y), x + y, result);
  return wide_where((y == 0) | (x == 1.0), one, result);
}

FUNCTION wide wide_log(wide x) {
  const pair value = logarithm(x);
  wide result = value.high + value.low;
  result = wide_where(x == 0, wide_fill(-__builtin_inf()), result);
  result = wide_where(x < 0, wide_fill(__builtin_nan("")), result);
  return wide_where((x != x) | (x == __builtin_inf()), x, result);
}

/* exp(x) with arguments bounded to what matters; NaN stays. */
INLINE wide bounded_exponential(wide x, double shift) {
  pair argument;
  argument.high = wide_where(x > 720.0, wide_fill(720.0), wide_where(x < -760.0, wide_fill(-760.0), x));
  argument.low = wide_fill(0.0);
  return exponential(argument, shift);
}

FUNCTION wide wide_exp(wide x) { return bounded_exponential(x, 0); }

/* (sinh(x) - x) / x and cosh(x) - 1 over z = x^2 <= 1. */
INLINE wide sinh_tail(wide z) {
  const wide z2 = z * z;
  return z * (((0x1.5555555555555p-3 + 0x1.11111111110fdp-7 * z) +
               z2 * (0x1.a01a01a01ee7ap-13 + 0x1.71de3a4e14331p-19 * z)) +
              (z2 * z2) * ((0x1.ae6460fbb2339p-26 + 0x1.611cb2cbace06p-33 * z) + z2 * 0x1.b412579198d1ap-41));
}

INLINE wide cosh_tail(wide z) {
  const wide z2 = z * z;
  return z *
         (0.5 + z * (((0x1.5555555555555p-5 + 0x1.6c16c16c16c0ep-10 * z) +
                      z2 * (0x1.a01a01a01c2e6p-16 + 0x1.27e4fb74471b6p-22 * z)) +
                     (z2 * z2) * ((0x1.1eed93a781a76p-29 + 0x1.9390780bff9f4p-37 * z) + z2 * 0x1.b372fc8c0c00fp-45)));
}

INLINE wide with_sign(wide magnitude, wide sign) {
  return (wide)((wide_bits)magnitude | ((wide_bits)sign & 0x8000000000000000));
}

FUNCTION wide wide_sinh(wide x) {
  const wide size = wide_absolute(x);
  const wide half = bounded_exponential(size, -1);
  const wide far = with_sign(half - 0.25 / half, x);
  return wide_where(size < 1.0, x + x * sinh_tail(x * x), far);
}

FUNCTION wide wide_cosh(wide x) {
  const wide half = bounded_exponential(wide_absolute(x), -1);
  return half + 0.25 / half;
}

FUNCTION wide wide_tanh(wide x) {
  const wide size = wide_absolute(x), z = x * x;
  const wide near = (x + x * sinh_tail(z)) / (1.0 + cosh_tail(z));
  const wide far = with_sign(1.0 - 2.0 / (bounded_exponential(2.0 * size, 0) + 1.0), x);
  return wide_where(size < 1.0, near, far);
}

/* exp(x) - 1, and log(1 + x). */
FUNCTION wide wide_expm1(wide x) {
  const wide half = x * 0.5, z = half * half;
  const wide sinh_half = half + half * sinh_tail(z), cosh_half = 1.0 + cosh_tail(z);
  const wide near = 2.0 * sinh_half * (sinh_half + cosh_half);
  const wide size = wide_absolute(x), value = wide_where(size < 1.0, near, bounded_exponential(x, 0) - 1.0);
  return wide_where(size < 0x1p-54, x, value); /* half of a subnormal number may be none */
}

FUNCTION wide wide_log1p(wide x) {
  const wide sum = 1.0 + x, lost = x - (sum - 1.0);
  const wide corrected = wide_log(sum) + lost / sum;
  return wide_where((sum == 1.0) | (x == __builtin_inf()) | (sum == 0),
                    wide_where(sum == 0, wide_fill(-__builtin_inf()), x), corrected);
}

#endif
