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

#include "neml2_capi/header/text/rules.inc"
};

// Report of points, by one or several systems.
template <class Numbers>
struct Report {
  typename Numbers::Status status, iterations;
  typename Numbers::Norm residual_norm, suggested_cut;

  // Adds the report of a later system on the same points. NaN is the greatest norm.
  void add(const Report& later) {
    using R = Rules<Numbers>;
    status = R::joined_status(status, later.status);
    iterations = iterations + later.iterations;
    residual_norm = R::joined_norm(residual_norm, later.residual_norm);
    suggested_cut = R::joined_cut(suggested_cut, later.suggested_cut);
  }
};

}  // namespace neml2_capi::newton
