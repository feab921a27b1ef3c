// Points in lanes, on kernels that solve for the free strains, too.
#pragma once

#include "capi/hypotheses/free_solve.h"
#include "capi/kernels/engine.h"

namespace neml2_capi::model {

kernels::Asked asked_of_lanes(const Request& request, const Reduction& reduction, const Model& law);

// Evaluates all points of a solve. Returns those that are left, by position, which may need smaller steps, pivots or a word
// on why they fail. The others are done, except for products.
Vector<std::size_t> run_in_lanes(FreeSolve& solve, const kernels::Engine& lanes);

}  // namespace neml2_capi::model
