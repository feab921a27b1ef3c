/* The functions that kernels call, of doubles or floats. Floats are computed as doubles. */
#ifndef NEML2_KERNEL_FUNCTIONS_H
#define NEML2_KERNEL_FUNCTIONS_H

#include "trigonometry.h"

#ifdef NEML2_KERNEL_FLOAT
#define WIDE(x) __builtin_convertvector(x, wide)
#define NARROW(x) __builtin_convertvector(x, lanes)
#else
#define WIDE(x) (x)
#define NARROW(x) (x)
#endif
#define OF_ONE(name) \
  INLINE lanes lanes_##name(lanes x) { return NARROW(wide_##name(WIDE(x))); }

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

INLINE lanes lanes_pow(lanes x, lanes y) { return NARROW(wide_pow(WIDE(x), WIDE(y))); }

#endif
