// When Newton's method ends, and how it searches: plain data, which code for several instruction sets reads, too.
#pragma once

#include <cstdint>

namespace neml2_capi::newton {

struct Settings {
#define NEML2_CRITERION(type, name, initial, meaning) type name = initial;
#include "neml2_capi/header/text/criteria.inc"
#undef NEML2_CRITERION
  bool strong_wolfe = false;
  std::int64_t ls_max_iters = 1;  // at most ls_max_iters - 1 trials; 1: no line search
  double ls_cutback = 2.0;
  double ls_c = 1e-3;
  // True for all points to iterate until all have converged: one failure fails all; the residual comes from its own
  // package.
  bool whole_batch = false;
  bool keep_history = false;
  // True if points are solved that failed before: pivots are chosen for each, and no increment is cut.
  bool in_rescue = false;
  // Bound of the steps |du| < step_tol (|u| + atol) for which the relative criterion counts: far from a solution, |r0|
  // may be huge.
  double step_tol = __builtin_inf();
};

}  // namespace neml2_capi::newton
