/* Sites of one point side by side in lanes: a loop takes LANES of them at a time, from site i on.
 *
 * All lanes of a block hold the same point, so that the first one tells a vector.
 */
#ifndef NEML2_KERNEL_SITES_H
#define NEML2_KERNEL_SITES_H

#include "lanes.h"

/* What an expression of i is at each of the sites. */
#define OF_SITES(expression)                              \
  ({                                                      \
    lanes at_sites;                                       \
    const int first_site = i;                             \
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; ++lane) { \
      const int i = first_site + lane;                       \
      at_sites[lane] = (expression)[0];                      \
    }                                                     \
    at_sites;                                             \
  })

/* Write a value of each site to all lanes of an expression of i. */
#define TO_SITES(expression, value)                       \
  do {                                                    \
    const lanes at_sites = (value);                       \
    const int first_site = i;                             \
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; ++lane) { \
      const int i = first_site + lane;                       \
      (expression) = fill(at_sites[lane]);                   \
    }                                                     \
  } while (0)

/* Of a row of numbers, one for each site: those from an expression on, and one in all lanes. */
typedef lanes row_of_sites __attribute__((aligned(sizeof(real)), may_alias));
#define OF_ROW(expression) (*(row_of_sites *)&(expression))

INLINE lanes spread(real value) {
  lanes result;
  _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; ++lane) result[lane] = value;
  return result;
}

/* Loops are over eight sites at least. Processors without AVX would gain little, for twice the time to compile. */
#if LANES == 1 || LANES > 8 || (defined(__x86_64__) && !defined(__AVX__))
#define SITES_OF_ONE 0
#else
#define SITES_OF_ONE LANES
#endif
#define RUN_ONE (SITES_OF_ONE ? run_one : 0)

#endif
