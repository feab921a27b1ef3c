/* The functions that kernels call, of doubles or floats. Floats are computed as doubles. */
#ifndef NEML2_KERNEL_FUNCTIONS_H
#define NEML2_KERNEL_FUNCTIONS_H

#include "special.h"

#ifdef NEML2_KERNEL_FLOAT
#define WIDE(x) __builtin_convertvector(x, wide)
#define NARROW(x) __builtin_convertvector(x, lanes)
#else
#define WIDE(x) (x)
#define NARROW(x) (x)
#endif

/* So many calls of one function at most stand together. */
#define CALLS 4

/* A number of each of some vectors whose lanes are alike, in one vector; and back. */
INLINE lanes packed(const lanes *x) {
  lanes result;
  for (int l = 0; l < LANES; ++l) result[l] = x[l % CALLS][0];
  return result;
}

INLINE void unpack(lanes from, lanes *x) {
  for (int l = 0; l < LANES && l < CALLS; ++l) x[l] = fill(from[l]);
}

/* each_NAME: results in place of x. If all lanes hold the same point, calls share vectors. */
#define OF_ONE(name)                                                           \
  INLINE lanes lanes_##name(lanes x) { return NARROW(wide_##name(WIDE(x))); }  \
  FUNCTION void each_##name(lanes *x, int count, int one) {                  \
    if (one)                                                                 \
      for (int i = 0; i < CALLS; i += LANES) unpack(lanes_##name(packed(x + i)), x + i); \
    else                                                                       \
      for (int i = 0; i < count; ++i) x[i] = lanes_##name(x[i]);               \
  }

#define OF_TWO(name)                                                                           \
  INLINE lanes lanes_##name(lanes x, lanes y) { return NARROW(wide_##name(WIDE(x), WIDE(y))); } \
  FUNCTION void each_##name(lanes *x, const lanes *y, int count, int one) {                  \
    if (one)                                                                                 \
      for (int i = 0; i < CALLS; i += LANES) unpack(lanes_##name(packed(x + i), packed(y + i)), x + i); \
    else                                                                                       \
      for (int i = 0; i < count; ++i) x[i] = lanes_##name(x[i], y[i]);                         \
  }

OF_ONE(exp)
OF_ONE(log)
OF_ONE(expm1)
OF_ONE(log1p)
OF_ONE(sinh)
OF_ONE(cosh)
OF_ONE(tanh)
OF_ONE(sin)
OF_ONE(cos)
OF_ONE(tan)
OF_ONE(asin)
OF_ONE(acos)
OF_ONE(atan)
OF_ONE(exp2)
OF_ONE(log2)
OF_ONE(log10)
OF_ONE(asinh)
OF_ONE(acosh)
OF_ONE(atanh)
OF_ONE(erf)
OF_ONE(erfc)
OF_ONE(ndtr)
OF_ONE(round)
OF_ONE(trunc)
OF_TWO(pow)
OF_TWO(atan2)
OF_TWO(hypot)
OF_TWO(fmod)
OF_TWO(copysign)

#endif
