// Newton's method with line search for a batch of independent systems.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "capi/newton/system.h"

namespace neml2_capi::newton {

struct Settings {
  double atol = 1e-10;
  double rtol = 1e-8;
  std::int64_t miters = 25;  // at most miters - 1 steps
  bool strong_wolfe = false;
  std::int64_t ls_max_iters = 1;  // at most ls_max_iters - 1 trials; 1: no line search
  double ls_cutback = 2.0;
  double ls_c = 1e-3;
  // True for all points to iterate until all have converged: one failure fails all; the residual comes from its own
  // package.
  bool whole_batch = false;
  bool keep_history = false;
  // Bound of the steps |du| < step_tol (|u| + atol) for which the relative criterion counts: far from a solution, |r0|
  // may be huge.
  double step_tol = std::numeric_limits<double>::infinity();
};

// Owner of the systems, for the log.
struct Owner {
  const char* name = "";               // of the segment
  std::int64_t first_point = 0;        // the points are consecutive from here on,
  const std::int64_t* rows = nullptr;  // or these, counted from there

  std::int64_t point(std::int64_t row) const { return first_point + (rows ? rows[row] : row); }
  // "residual.pt2, 3 points from 8 on"
  std::string str(std::int64_t points) const;
};

// Outcome of each point.
struct Outcome {
  Vector<std::int32_t> status;  // NEML2_OK, NEML2_NOT_CONVERGED or NEML2_SINGULAR
  Vector<std::int32_t> iterations;
  Vector<double> initial_norm;  // |r| at the initial guess
  Vector<double> residual_norm;
  Vector<double> history;  // if kept: row-major (points, miters), |r| of each iterate, NaN beyond

  Outcome(std::int64_t points, const Settings& settings);
};

// Solves for `u`, which holds the initial guess, one row per point, and receives the solution where it was found and
// the last iterate elsewhere.
//
// A point has converged when |r| < atol or |r| / |r0| < rtol, as in NEML2, or r = 0. It is then left alone: its result
// does not depend on the points beside it.
Outcome solve(System& system, Groups& u, const Settings& settings, const Owner& owner = {});

}  // namespace neml2_capi::newton
