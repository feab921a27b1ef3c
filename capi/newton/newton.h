// Newton's method with line search for a batch of independent systems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/newton/settings.h"
#include "capi/newton/system.h"

namespace neml2_capi::newton {

// Owner of the systems, for the log.
struct Owner {
  const char* name = "";               // of the segment
  std::int64_t first_point = 0;        // the points are consecutive from here on,
  const std::int64_t* rows = nullptr;  // or these, counted from there

  std::int64_t point(std::int64_t row) const { return first_point + (rows ? rows[row] : row); }
  // "residual.pt2, 3 points from 8 on"
  std::string str(std::int64_t points) const;
};

// Reports of points, each by point.
struct Reports {
  Vector<std::int32_t> status;  // NEML2_OK, NEML2_NOT_CONVERGED or NEML2_SINGULAR
  Vector<std::int32_t> iterations;
  Vector<double> residual_norm;
  Vector<double> suggested_cut;  // 1 if a point did not fail
  Vector<double> initial_norm;   // of one system: |r| at the guess
  Vector<double> history;  // of the last system, if kept: row-major (points, miters), |r| of each iterate, NaN beyond

  // Sets the reports of points that nothing was solved for.
  void begin(std::int64_t points, std::int32_t with_status, const Settings& settings);
  // Adds the reports of a later system.
  void add(Reports later);
  // Notes that a point failed; its norms are there.
  void fail(std::size_t point, std::int32_t with_status);
};

// Solves for `u`, which holds the initial guess, one row per point, and receives the solution where it was found and
// the last iterate elsewhere.
//
// A point has converged when |r| < atol or |r| / |r0| < rtol, as in NEML2, or r = 0. It is then left alone: its result
// does not depend on the points beside it. If there is a `reference` by point, |r0| is at least that: see Rules::initial().
Reports solve(System& system, Groups& u, const Settings& settings, const Owner& owner = {},
              const Vector<double>& reference = {});

}  // namespace neml2_capi::newton
