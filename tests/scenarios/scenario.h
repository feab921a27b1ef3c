/* Helpers of the scenarios in C: floating-point traps, strains, and the printing of results. */
#ifndef NEML2_CAPI_TESTS_SCENARIO_H
#define NEML2_CAPI_TESTS_SCENARIO_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* feenableexcept */
#endif
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "../c/materials.h"

/* The traps that are on, in both units: fegetexcept(), which glibc has, sees the one of long doubles alone. */
static inline unsigned scenario_traps(void) {
  unsigned traps = 0;
#if defined(__GLIBC__)
  traps = (unsigned)fegetexcept();
#endif
#if defined(__x86_64__)
  traps |= ((~_mm_getcsr() & _MM_MASK_MASK) >> 7) << 8;
#endif
  return traps;
}

static unsigned scenario_traps_of_host;

static inline void scenario_begin(void) {
#if defined(__GLIBC__)
  if (!getenv("NEML2_TEST_NO_TRAPS")) feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#endif
  scenario_traps_of_host = scenario_traps();
}

/* Checks that the traps are as they were, and returns the status of main(). */
static inline int scenario_end(void) {
  CHECK(scenario_traps() == scenario_traps_of_host);
  return CHECK_RESULT();
}

/* Every language computes strains by these operations in this order, so that all get the same bits. */
static const double direction[6] = {1, -0.3, -0.25, 0.1, -0.2, 0.05};

static inline void elastic_strains(int64_t n, double *strain) {
  for (int64_t p = 0; p < n; ++p)
    for (int i = 0; i < 6; ++i) strain[6 * p + i] = 1e-3 * direction[i] * (1 + 0.1 * (double)p);
}

static inline double triangle(int k) { return k <= 5 ? k / 5.0 : k <= 15 ? 2 - k / 5.0 : k / 5.0 - 4; }

/* Time and strains of step k of the cycle; the points of `b` count from `first`. */
static inline void cycle_load(viscoplastic_block *b, int64_t first, int k) {
  b->time = k;
  for (int64_t p = 0; p < b->n; ++p) {
    const double amplitude = 0.01 * triangle(k) / (1 + 0.5 * (double)(first + p));
    for (int i = 0; i < 6; ++i) b->strain[6 * p + i] = amplitude * direction[i];
  }
}

/* Prints a line per point, of `n` values out of `stride`. */
static inline void print_points(const char *name, int64_t npoints, int n, int64_t stride, const double *values) {
  for (int64_t p = 0; p < npoints; ++p) {
    printf("%s", name);
    for (int i = 0; i < n; ++i) printf(" %.17g", values[stride * p + i]);
    printf("\n");
  }
}

/* Prints one line for all points. */
static inline void print_integers(const char *name, int64_t n, const int32_t *values) {
  printf("%s", name);
  for (int64_t i = 0; i < n; ++i) printf(" %d", (int)values[i]);
  printf("\n");
}

#endif
