// Dense linear systems of a batch, solved in lanes.
#pragma once

#include "capi/graph/singular.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::graph {

// Returns the solutions of A x = b: (points, n, n) and (points, n) give (points, n), or (points, n, m) the same. A
// singular matrix gives NaN. Throws std::exception if the shapes do not fit, or if a matrix is singular and `singular`
// is null.
Tensor solve_linear(const Tensor& a, const Tensor& b, SingularInfo* singular);

}  // namespace neml2_capi::graph
