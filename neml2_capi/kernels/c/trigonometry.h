/* Trigonometric functions of lanes and their inverses, made as those of powers.h.
 *
 * Largest errors that the tests found: sin and cos 0.8 ulp, tan 2, asin, acos and atan 3.
 *
 * Sources: reduction of arguments of Cody and Waite (Software Manual for the Elementary Functions, 1980), and
 * of Payne and Hanek (SIGNUM Newsletter 18, 1983) for large ones.
 */
#ifndef NEML2_KERNEL_TRIGONOMETRY_H
#define NEML2_KERNEL_TRIGONOMETRY_H

#include "powers.h"

/* An angle less a multiple of pi/2. */
typedef struct angle {
  wide high, low;
  wide_bits quadrant; /* the multiple; the last two bits count */
} angle;

/* The upper half of a product of integers. */
INLINE uint64_t upper_half(uint64_t x, uint64_t y) {
  __extension__ typedef unsigned __int128 product;
  return (uint64_t)((product)x * y >> 64);
}

/* The same for one finite number of 2^20 or more: bits of 2/pi times the digits of x, modulo 4. */
FUNCTION uint64_t reduce_large(double x, double *high, double *low) {
  static const uint64_t two_over_pi[] = {
      0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
      0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
      0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
      0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};
  union {
    double number;
    uint64_t bits;
  } digits = {x};
  const int exponent = (int)(digits.bits >> 52 & 2047) - 1075;
  const uint64_t integer = (digits.bits & 0x000fffffffffffff) | 0x0010000000000000;
  uint64_t window[3], result[3];
  for (int w = 0; w < 3; ++w) {
    const int first = exponent - 2 + 64 * w + 64; /* 64 zeros stand before the table */
    const int word = first / 64 - 1, shift = first % 64;
    const uint64_t left = word < 0 ? 0 : two_over_pi[word];
    window[w] = shift ? left << shift | two_over_pi[word + 1] >> (64 - shift) : left;
  }
  uint64_t carry = 0;
  for (int w = 2; w >= 0; --w) {
    result[w] = window[w] * integer + carry;
    carry = upper_half(window[w], integer) + (result[w] < carry);
  }
  uint64_t quadrant = result[0] >> 62;
  uint64_t upper = result[0] << 2 | result[1] >> 62, lower = result[1] << 2 | result[2] >> 62;
  const int above = upper >> 63 != 0; /* more than a half: from the next quadrant downward */
  if (above) {
    quadrant += 1;
    upper ^= 0xffffffffffffffff;
    lower ^= 0xffffffffffffffff;
  }
  const double a = (double)(upper >> 11) * 0x1p-53;
  const double b = (double)((upper & 2047) << 42 | lower >> 22) * 0x1p-106;
  const double sign = above ? -1.0 : 1.0, fraction = a + b, rest = b - (fraction - a);
  const double top = fraction * 0x1.921fb54442d18p+0;
  /* The error of the product by halves of 26 bits, without a fused multiply-add. */
  const double c = fraction * 134217729.0, f1 = c - (c - fraction), f2 = fraction - f1;
  const double p1 = 0x1.921fb58000000p+0, p2 = -0x1.dde9740000000p-27;
  const double error = ((f1 * p1 - top) + f1 * p2 + f2 * p1) + f2 * p2;
  *high = sign * top;
  *low = sign * (error + (fraction * 0x1.1a62633145c07p-54 + rest * 0x1.921fb54442d18p+0));
  return quadrant;
}

FUNCTION angle reduced(wide x) {
  const wide size = wide_absolute(x);
  const wide shifted = size * 0x1.45f306dc9c883p-1 + ROUND_TO_INTEGER, k = shifted - ROUND_TO_INTEGER;
  angle result;
  const wide first = size - k * 0x1.921fb54400000p+0; /* exact, 33 bits of pi/2 */
  const wide next = k * 0x1.0b4611a600000p-34;
  const wide difference = first - next, back = difference - first;
  const wide lost = (first - (difference - back)) - (next + back);
  const wide rest = lost - k * 0x1.3198a2e037073p-69;
  result.high = difference + rest;
  result.low = rest - (result.high - difference);
  result.quadrant = (wide_bits)shifted;
  for (int l = 0; l < LANES; ++l) {
    if (size[l] >= 0x1p20 && size[l] < __builtin_inf()) {
      double high, low;
      result.quadrant[l] = reduce_large(size[l], &high, &low);
      result.high[l] = high;
      result.low[l] = low;
    }
  }
  return result;
}

INLINE wide sine(angle x) {
  const wide r = x.high, z = r * r, z2 = z * z;
  const wide tail =
      ((-0x1.5555555555555p-3 + 0x1.1111111111110p-7 * z) + z2 * (-0x1.a01a01a019936p-13 + 0x1.71de3a54605eep-19 * z)) +
      (z2 * z2) * ((-0x1.ae64541266374p-26 + 0x1.61217ec0171a7p-33 * z) + z2 * -0x1.ab17a7921fffep-41);
  return r + (x.low * (1.0 - 0.5 * z) + r * (z * tail));
}

INLINE wide cosine(angle x) {
  const wide r = x.high, z = r * r, z2 = z * z, half = 0.5 * z, most = 1.0 - half;
  const wide tail = ((0x1.5555555555555p-5 + -0x1.6c16c16c16c16p-10 * z) +
                     z2 * (0x1.a01a01a019d0ap-16 + -0x1.27e4fb7712bdfp-22 * z)) +
                    (z2 * z2) * ((0x1.1eed8deb6d55fp-29 + -0x1.9394b9c9c1e01p-37 * z) + z2 * 0x1.ab7833768127dp-45);
  return most + (((1.0 - most) - half) + (z2 * tail - r * x.low));
}

/* Bits of the sign, where bit 1 of the count of quadrants is set. */
INLINE wide_bits turned(wide_bits quadrant) { return (quadrant & 2) << 62; }

INLINE wide_mask is_odd(wide_bits quadrant) { return (wide_mask)((quadrant & 1) != 0); }

FUNCTION wide wide_sin(wide x) {
  const angle a = reduced(x);
  const wide_bits value = (wide_bits)wide_where(is_odd(a.quadrant), cosine(a), sine(a));
  const wide result = (wide)(value ^ turned(a.quadrant) ^ ((wide_bits)x & 0x8000000000000000));
  return wide_where(wide_absolute(x) < __builtin_inf(), result, x - x);
}

FUNCTION wide wide_cos(wide x) {
  const angle a = reduced(x);
  const wide_bits value = (wide_bits)wide_where(is_odd(a.quadrant), sine(a), cosine(a));
  const wide result = (wide)(value ^ turned(a.quadrant + 1));
  return wide_where(wide_absolute(x) < __builtin_inf(), result, x - x);
}

FUNCTION wide wide_tan(wide x) {
  const angle a = reduced(x);
  const wide s = sine(a), c = cosine(a);
  const wide_mask odd = is_odd(a.quadrant);
  const wide_bits value = (wide_bits)(wide_where(odd, -c, s) / wide_where(odd, s, c));
  const wide result = (wide)(value ^ ((wide_bits)x & 0x8000000000000000));
  return wide_where(wide_absolute(x) < __builtin_inf(), result, x - x);
}

/* The arc tangent for |t| <= tan(pi/8). */
INLINE wide arc_tangent(wide t) {
  const wide z = t * t, z2 = z * z, z4 = z2 * z2;
  const wide tail =
      (((-0x1.5555555555555p-2 + 0x1.9999999999953p-3 * z) + z2 * (-0x1.249249248d7cap-3 + 0x1.c71c71c30300ap-4 * z)) +
       z4 * ((-0x1.745d165d9edfbp-4 + 0x1.3b1392d04b488p-4 * z) +
             z2 * (-0x1.110e875de30b4p-4 + 0x1.e19a043982dbep-5 * z))) +
      (z4 * z4) * ((-0x1.ac7a21624c6d9p-5 + 0x1.74dbcb5711d5ap-5 * z) +
                   z2 * (-0x1.1b2e7e27c030fp-5 + 0x1.0ac7d2c47839cp-6 * z));
  return t + t * (z * tail);
}

/* From 1 on by 1/x, from tan(pi/8) on by (x - 1) / (x + 1). */
FUNCTION wide wide_atan(wide x) {
  const wide size = wide_absolute(x);
  const wide_mask large = size > 1.0;
  const wide small = wide_where(large, 1.0 / size, size);
  const wide_mask middle = small > 0x1.a827999fcef32p-2;
  wide value = arc_tangent(wide_where(middle, (small - 1.0) / (small + 1.0), small));
  value = wide_where(middle, 0x1.921fb54442d18p-1 + (value + 0x1.1a62633145c07p-55), value);
  value = wide_where(large, 0x1.921fb54442d18p+0 - (value - 0x1.1a62633145c07p-54), value);
  return with_sign(value, x);
}

/* The angle of (x, y), from -pi to pi; the sign of a zero counts. */
FUNCTION wide wide_atan2(wide y, wide x) {
  const wide infinity = wide_fill(__builtin_inf()), one = wide_fill(1.0), zero = wide_fill(0.0);
  const wide width = wide_absolute(x), height = wide_absolute(y);
  const wide_mask steep = height > width;
  wide over = wide_where(steep, width, height), under = wide_where(steep, height, width);
  const wide_mask far = under > 0x1p1000;
  over = wide_where(over == infinity, one, wide_where(under == infinity, zero, wide_where(far, over * 0.25, over)));
  under = wide_where(under == infinity, one, wide_where(far, under * 0.25, under));
  const wide_mask middle = over > 0x1.a827999fcef32p-2 * under;
  const wide t = wide_where(middle, over - under, over) / wide_where(middle, over + under, under);
  wide value = arc_tangent(wide_where(under == 0, zero, t));
  value = wide_where(middle, 0x1.921fb54442d18p-1 + (value + 0x1.1a62633145c07p-55), value);
  value = wide_where(steep, 0x1.921fb54442d18p+0 - (value - 0x1.1a62633145c07p-54), value);
  const wide_mask left = (wide_mask)with_sign(one, x) < 0;
  value = wide_where(left, 0x1.921fb54442d18p+1 - (value - 0x1.1a62633145c07p-53), value);
  return wide_where((x != x) | (y != y), x + y, with_sign(value, y));
}

FUNCTION wide wide_asin(wide x) { return wide_atan(x / wide_square_root((1.0 - x) * (1.0 + x))); }

FUNCTION wide wide_acos(wide x) { return 2.0 * wide_atan(wide_square_root((1.0 - x) / (1.0 + x))); }

#endif
