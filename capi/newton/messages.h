// What Newton's method tells the log.
#pragma once

#include <cstdint>
#include <optional>

#include "capi/newton/newton.h"

namespace neml2_capi::newton {

// An iteration of some points: the greatest |r|, the least step of a line search, and how many points are left.
void tell_iteration(const Owner& owner, std::int64_t points, std::int64_t iteration, double greatest_norm,
                    std::optional<double> least_step, std::int64_t left);

// The end of a solve.
struct End {
  std::int64_t converged = 0, iterations = 0;  // the most of any point
  std::int64_t failed = -1;                    // the first row that failed; -1: none
  bool singular = false;                       // is its Jacobian,
  double norm = 0.0;                           // and its |r|
};
void tell_end(const Owner& owner, std::int64_t points, const End& end);

// Increments that were cut: how many, those that failed all the same, and how often one was halved at most.
struct Cuts {
  std::int64_t points = 0, failed = 0, deepest = 0;
};
void tell_cuts(const Owner& owner, std::int64_t points, const Cuts& cuts);

}  // namespace neml2_capi::newton
