// Rules of Newton's method on what norms of the residual say of a point, for a number and for tensors of them alike.
//
// A `Norm` is double, or has the same operators and holds one for each point; so are masks bool, and statuses int32.
#pragma once

#include <cmath>
#include <cstdint>

#include "capi/newton/newton.h"

namespace neml2_capi::newton {

inline bool is_finite(double value) { return std::isfinite(value); }
template <class Value>
Value choose(bool mask, Value where_true, Value where_false) {
  return mask ? where_true : where_false;
}

// Decides by the absolute criterion alone.
template <class Norm>
auto has_vanished(const Norm& now, const Settings& settings) {
  return (now < settings.atol) | (now == 0.0);
}
template <class Norm>
auto has_converged(const Norm& now, const Norm& initial, const Settings& settings) {
  return has_vanished(now, settings) | (now / initial < settings.rtol);
}

// Status of a point that goes on.
constexpr std::int32_t undecided = -1;

// Returns the status of a point after an iteration, or that of `open`, which is undecided.
template <class Norm, class Mask, class Status>
Status verdict(const Norm& now, const Mask& singular, const Mask& converged, const Status& open) {
  const Status of_regular = choose(converged, Status(NEML2_OK), open);
  return choose(singular, Status(NEML2_SINGULAR), choose(is_finite(now), of_regular, Status(NEML2_NOT_CONVERGED)));
}

// Tells whether a line search takes the step `alpha`, by Armijo's rule: `slope` is the product of residual and step.
template <class Norm>
auto has_decreased(const Norm& now, const Norm& before, const Norm& alpha, const Norm& slope,
                   const Settings& settings) {
  const Norm squared = before * before;
  const Norm decrease = settings.strong_wolfe ? alpha * squared : alpha * slope * 2.0;
  return (now * now <= squared - decrease * settings.ls_c) | (now <= settings.atol);
}

// Returns the factor by which to cut an increment that failed: half where the residual was going down, else more.
template <class Norm>
Norm suggested_cut(const Norm& initial, const Norm& now) {
  return choose(now < initial, Norm(0.5), Norm(0.25));
}

}  // namespace neml2_capi::newton
