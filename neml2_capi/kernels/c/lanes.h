/* Vectors of LANES points, by the vector extensions of GCC and clang.
 *
 * NEML2_KERNEL_LANES is the number of lanes, a power of 2. NEML2_KERNEL_FLOAT makes `real` a float.
 * Every operation is one of IEEE 754 in each lane: compile with -ffp-contract=off, never with
 * -ffast-math, and the results have the same bits from every compiler and for every processor.
 */
#ifndef NEML2_KERNEL_LANES_H
#define NEML2_KERNEL_LANES_H

#include <stdint.h>

#ifdef __FAST_MATH__
#error "kernels need IEEE arithmetic: compile without -ffast-math"
#endif

#ifndef NEML2_KERNEL_LANES
#define NEML2_KERNEL_LANES 4
#endif
#define LANES NEML2_KERNEL_LANES

#define INLINE static inline __attribute__((always_inline, unused))
#define FUNCTION static __attribute__((noinline, unused))

/* Doubles and their bits: what functions.h computes with, whatever `real` is. */
typedef double wide __attribute__((vector_size(8 * LANES)));
typedef int64_t wide_mask __attribute__((vector_size(8 * LANES)));
typedef uint64_t wide_bits __attribute__((vector_size(8 * LANES)));

#ifdef NEML2_KERNEL_FLOAT
#define REAL_BYTES 4
typedef float real;
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t mask __attribute__((vector_size(4 * LANES)));
#else
#define REAL_BYTES 8
typedef double real;
typedef wide lanes;
typedef wide_mask mask;
#endif

INLINE lanes fill(real value) { return value - (lanes){0}; }

#if LANES == 4 && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
/* A number of each of four vectors whose lanes are alike, in one; and a number of that in all lanes. */
#define NEML2_KERNEL_PACKS
INLINE lanes pack_of(lanes a, lanes b, lanes c, lanes d) {
  return __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 5, 2, 7), __builtin_shufflevector(c, d, 0, 5, 2, 7), 0, 1, 6, 7);
}
#define lane_of(x, lane) __builtin_shufflevector(x, x, lane, lane, lane, lane)
#endif
#endif

/* value where the condition holds, else other: both are computed. */
INLINE lanes where(mask condition, lanes value, lanes other) {
  return (lanes)((condition & (mask)value) | (~condition & (mask)other));
}

INLINE lanes absolute(lanes x) {
#ifdef NEML2_KERNEL_FLOAT
  return (lanes)((mask)x & INT32_MAX);
#else
  return (lanes)((mask)x & INT64_MAX);
#endif
}

/* A power of 2 by which x is neither subnormal nor so large that its reciprocal is. */
INLINE lanes scale_of(lanes x) {
#ifdef NEML2_KERNEL_FLOAT
  const real small = 0x1p-100f, large = 0x1p100f, up = 0x1p50f, down = 0x1p-50f;
#else
  const real small = 0x1p-1000, large = 0x1p1000, up = 0x1p100, down = 0x1p-100;
#endif
  const lanes size = absolute(x);
#if defined(__AVX__) && LANES * REAL_BYTES == 32
  /* Nearly all are 1: the branch is foreseen, and what follows does not wait for the comparisons. */
  typedef long long words __attribute__((vector_size(32)));
  const words other = (words)((size < small) | (size > large));
  if (__builtin_ia32_ptestz256(other, other)) return fill(1);
#endif
  return where(size < small, fill(up), where(size > large, fill(down), fill(1)));
}

INLINE lanes square_root(lanes x) {
  lanes result;
#ifdef NEML2_KERNEL_FLOAT
  for (int l = 0; l < LANES; ++l) result[l] = __builtin_sqrtf(x[l]);
#else
  for (int l = 0; l < LANES; ++l) result[l] = __builtin_sqrt(x[l]);
#endif
  return result;
}

/* -1, 0 or 1; 0 for NaN, as torch has it. */
INLINE lanes sign_of(lanes x) { return where(x > 0, fill(1), where(x < 0, fill(-1), fill(0))); }

/* The greater and the lesser one; NaN where either is. */
INLINE lanes greatest(lanes x, lanes y) { return where((mask)(x > y) | (mask)(x != x), x, y); }

INLINE lanes least(lanes x, lanes y) { return where((mask)(x < y) | (mask)(x != x), x, y); }

INLINE lanes round_down(lanes x) {
  lanes result;
#ifdef NEML2_KERNEL_FLOAT
  for (int l = 0; l < LANES; ++l) result[l] = __builtin_floorf(x[l]);
#else
  for (int l = 0; l < LANES; ++l) result[l] = __builtin_floor(x[l]);
#endif
  return result;
}

#endif
