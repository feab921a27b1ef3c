/* Rows of points, (point, component), to lanes and back, in the registers of x86-64-v3 and later.
 *
 * Elsewhere NEML2_KERNEL_ROWS is not defined, and nothing else is.
 */
#ifndef NEML2_KERNEL_ROWS_H
#define NEML2_KERNEL_ROWS_H

#include "lanes.h"

#if defined(__AVX2__) && REAL_BYTES == 8 && (LANES == 4 || LANES == 8 && defined(__AVX512DQ__)) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define NEML2_KERNEL_ROWS
#define INTO_ROWS inline __attribute__((always_inline))

typedef double two __attribute__((vector_size(16)));
typedef double four __attribute__((vector_size(32)));
/* Vectors in memory of any alignment, under numbers of any type. */
typedef double any_two __attribute__((vector_size(16), aligned(8), may_alias));
typedef double any_lanes __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

#if LANES == 4
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 4, 2, 6)
#define ODD(x, y) __builtin_shufflevector(x, y, 1, 5, 3, 7)
#define LOW(x, y) __builtin_shufflevector(x, y, 0, 1, 4, 5)
#define HIGH(x, y) __builtin_shufflevector(x, y, 2, 3, 6, 7)
#else
#define EVEN(x, y) __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14)
#define ODD(x, y) __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15)
#define LOW(x, y) __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH(x, y) __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15)
#define FIRST(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11)
#define LAST(x, y) __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15)
#endif

/* Two numbers of two rows. gcc shuffles what it could insert from memory, unless it is told. */
INLINE four two_rows(const double *row, int64_t stride) {
#ifdef __clang__
  return __builtin_shufflevector(*(const any_two *)row, *(const any_two *)(row + stride), 0, 1, 2, 3);
#else
  return __builtin_ia32_vinsertf128_pd256(__builtin_ia32_pd256_pd(*(const any_two *)row), *(const any_two *)(row + stride), 1);
#endif
}

/* Two numbers of half of the rows. */
INLINE lanes half_of_rows(const double *row, int64_t stride) {
#if LANES == 4
  return two_rows(row, stride);
#elif defined(__clang__)
  return __builtin_shufflevector(two_rows(row, stride), two_rows(row + 2 * stride, stride), 0, 1, 2, 3, 4, 5, 6, 7);
#else
  lanes all = __builtin_ia32_pd512_256pd(two_rows(row, stride));
  all = __builtin_ia32_insertf64x2_512_mask(all, *(const any_two *)(row + 2 * stride), 2, all, -1);
  return __builtin_ia32_insertf64x2_512_mask(all, *(const any_two *)(row + 3 * stride), 3, all, -1);
#endif
}

/* Two columns of the rows. */
INLINE void pair_from_rows(const double *rows, int64_t stride, lanes *to) {
  const lanes even = half_of_rows(rows, 2 * stride), odd = half_of_rows(rows + stride, 2 * stride);
  to[0] = EVEN(even, odd);
  to[1] = ODD(even, odd);
}

/* One column of the rows. */
INLINE void column_from_rows(const double *rows, int64_t stride, lanes *to) {
  if (stride == 0) {
    *to = fill(*rows);
  } else if (stride == 1) {
    *to = *(const any_lanes *)rows;
  } else {
    for (int l = 0; l < LANES; ++l) (*to)[l] = rows[l * stride];
  }
}

INLINE void column_to_rows(const lanes *column, double *rows) { *(any_lanes *)rows = *column; }

/* Six columns to rows with nothing between them. */
INLINE void tensor_to_rows(const lanes *x, double *rows) {
  any_lanes *const to = (any_lanes *)rows;
  const lanes a = EVEN(x[0], x[1]), b = EVEN(x[2], x[3]), c = EVEN(x[4], x[5]);
  const lanes d = ODD(x[0], x[1]), e = ODD(x[2], x[3]), f = ODD(x[4], x[5]);
  const lanes ab = LOW(a, b), cd = LOW(c, d), ef = LOW(e, f);
  const lanes ab2 = HIGH(a, b), cd2 = HIGH(c, d), ef2 = HIGH(e, f);
#if LANES == 4
  to[0] = ab;
  to[1] = cd;
  to[2] = ef;
  to[3] = ab2;
  to[4] = cd2;
  to[5] = ef2;
#else
  to[0] = FIRST(ab, cd);
  to[1] = FIRST(ef, ab2);
  to[2] = FIRST(cd2, ef2);
  to[3] = LAST(ab, cd);
  to[4] = LAST(ef, ab2);
  to[5] = LAST(cd2, ef2);
#endif
}

/* Tells whether all lanes are finite. */
INLINE int are_finite(lanes x) {
  const lanes zero = x - x; /* or NaN */
#if LANES == 4
  typedef long long words __attribute__((vector_size(32)));
  const words other = (words)(zero != zero);
  return __builtin_ia32_ptestz256(other, other);
#else
  return __builtin_ia32_cmppd512_mask(zero, zero, 3, -1, 4) == 0; /* unordered; rounded as the processor is set to */
#endif
}

#undef EVEN
#undef ODD
#undef LOW
#undef HIGH
#undef FIRST
#undef LAST

#endif
#endif

#endif
