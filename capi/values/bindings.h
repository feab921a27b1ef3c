// Arrays of one evaluation of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "capi/values/parts.h"
#include "capi/values/points.h"

namespace neml2_capi::model {

// Reports, by NEML2_REPORT_*, and the type of their numbers.
inline constexpr int num_reports = NEML2_REPORT_RESCUE_SOLVES + 1;
constexpr DType dtype_of_report(int kind) {
  const bool counts =
      kind == NEML2_REPORT_STATUS || kind == NEML2_REPORT_ITERATIONS || kind == NEML2_REPORT_RESCUE_SOLVES;
  return counts ? DType::int32 : DType::float64;
}

// The derivative of an input by a variable with which it moves, (input's components, the variable's) a point; zero if it
// is not bound.
struct Slope {
  std::size_t input;
  Kind kind;  // of the variable
  std::size_t variable;
  Points array;
  // The components of the input, and of the variable, that the array has, if it has not all; others may be in another one.
  const std::vector<std::int64_t>*components = nullptr, *of_variable = nullptr;
};

// Addresses of one caller; the vectors follow the order of the variables, or of the derivatives. An array that is not
// bound is null. Those that are added to, the adjoints, may have a stride of 0: they receive the sum over all points.
struct Bindings {
  std::int64_t points = 0;
  std::int64_t steps = 1;          // of a transient, of which these are the arrays of the first one
  std::vector<Points> inputs;      // all bound
  std::vector<Points> parameters;  // all bound
  std::vector<Points> outputs;
  std::vector<Points> blocks, parameter_blocks;      // by derivative
  std::vector<Points> tangents, jvps;                // by input, by output
  std::vector<Points> cotangents;                    // by output
  std::vector<Points> adjoints, parameter_adjoints;  // by input, by parameter
  std::vector<Slope> slopes;                         // of inputs that move: derivatives are then total ones
  std::vector<bool> copies;                          // by input: see inputs_to_copy()
  Points report[num_reports];                        // by NEML2_REPORT_*
  bool mark_failed = false;                          // write NaN to the results of failed points; else leave them
  bool input_first = false;                          // blocks have the components of the input before the output's
  Vector<Tensor>* unknowns = nullptr;                // if not null: filled, by unknown, when points fail
  std::vector<Points> iterates;                      // by unknown: written if a point failed; empty: not wanted
  // By unknown, if Newton's method is to begin there, but where they are NaN. All iterates are then written.
  std::vector<Points> guesses;
  // By output: known values, from which all unknowns follow. Empty if they do not.
  std::vector<Points> solution;

  // Returns the arrays of a part.
  std::vector<Points>& of(Part part) { return this->*parts[static_cast<std::size_t>(part)]; }
  const std::vector<Points>& of(Part part) const { return this->*parts[static_cast<std::size_t>(part)]; }

 private:
  static constexpr std::vector<Points> Bindings::*parts[] = {
      &Bindings::inputs,           &Bindings::parameters,
      &Bindings::tangents,         &Bindings::cotangents,
      &Bindings::outputs,          &Bindings::blocks,
      &Bindings::parameter_blocks, &Bindings::jvps,
      &Bindings::adjoints,         &Bindings::parameter_adjoints};
};

}  // namespace neml2_capi::model
