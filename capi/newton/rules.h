// Rules of Newton's method, for a number, lanes of numbers and tensors of them alike.
//
// `Numbers` says what a rule computes with. It has the types Norm, Mask and Status, which hold one value for each point,
// and the functions number(double), status(integer), choose(mask, if_true, if_false) and is_finite(norm); the types have the
// operators of numbers. All functions here are templates of it, so that no code for one instruction set is taken for
// another.
#pragma once

#include <cstdint>

#include "capi/newton/settings.h"
#include "neml2_capi.h"

namespace neml2_capi::newton {

// Numbers of the rules: one point.
struct Scalars {
  using Norm = double;
  using Mask = bool;
  using Status = std::int32_t;

  static Norm number(double value) { return value; }
  static Status status(std::int64_t value) { return static_cast<Status>(value); }
  template <class Value>
  static Value choose(bool mask, Value if_true, Value if_false) {
    return mask ? if_true : if_false;
  }
  static bool is_finite(double value) { return value - value == 0.0; }
};

// Statuses as vectors take them; the last one is of a point that goes on.
inline constexpr std::int64_t ok = NEML2_OK, non_finite = NEML2_NON_FINITE, undecided = -1;

template <class Numbers>
struct Rules {
  using Norm = typename Numbers::Norm;
  using Mask = typename Numbers::Mask;
  using Status = typename Numbers::Status;

  // Tells whether a step was small enough for the relative criterion to count.
  static Mask has_settled(const Norm& step, const Norm& size, const Settings& settings) {
    return step < (size + settings.atol) * settings.step_tol;
  }

  // Tells whether a residual is small enough; only steps that have settled make the relative criterion count.
  static Mask has_converged(const Norm& now, const Norm& initial, const Mask& settled, const Settings& settings) {
    return (now < settings.atol) | (now == 0.0) | ((now / initial < settings.rtol) & settled);
  }

  // Returns what the relative criterion compares with, of points that begin at a solution nearby: |r| at the guess that they
  // would have without, so that they are solved as well as others.
  static Norm initial(const Norm& now, const Norm& reference) {
    return Numbers::choose(Numbers::is_finite(reference) & (now < reference), reference, now);
  }

  // Returns the status of points after an iteration.
  static Status verdict(const Norm& now, const Norm& initial, const Mask& singular, const Mask& settled,
                        const Settings& settings) {
    const Mask converged = has_converged(now, initial, settled, settings);
    const Status of_open = Numbers::choose(initial * settings.divtol < now, Numbers::status(NEML2_NOT_CONVERGED),
                                           Numbers::status(undecided));
    const Status of_regular = Numbers::choose(converged, Numbers::status(ok), of_open);
    const Status found = Numbers::choose(Numbers::is_finite(now), of_regular, Numbers::status(NEML2_NOT_CONVERGED));
    return Numbers::choose(singular, Numbers::status(NEML2_SINGULAR), found);
  }

  // Tells whether a line search takes the step `alpha`, by Armijo's rule: `slope` is the product of residual and step.
  static Mask has_decreased(const Norm& now, const Norm& before, const Norm& alpha, const Norm& slope,
                            const Settings& settings) {
    const Norm squared = before * before;
    const Norm decrease = settings.strong_wolfe ? alpha * squared : alpha * slope * 2.0;
    return (now * now <= squared - decrease * settings.ls_c) | (now <= settings.atol);
  }

  // Returns the factor by which to cut an increment that failed: half if the residual was going down, else more.
  static Norm suggested_cut(const Norm& initial, const Norm& now) {
    return Numbers::choose(now < initial, Numbers::number(0.5), Numbers::number(0.25));
  }
};

// Report of points, by one or several systems.
template <class Numbers>
struct Report {
  typename Numbers::Status status, iterations;
  typename Numbers::Norm residual_norm, suggested_cut;

  // Adds the report of a later system on the same points. NaN is the greatest norm.
  void add(const Report& later) {
    status = Numbers::choose(status == ok, later.status, status);
    iterations = iterations + later.iterations;
    residual_norm = Numbers::choose(later.residual_norm <= residual_norm, residual_norm, later.residual_norm);
    suggested_cut = Numbers::choose(later.suggested_cut < suggested_cut, later.suggested_cut, suggested_cut);
  }
};

}  // namespace neml2_capi::newton
