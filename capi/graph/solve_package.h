// Packages that do nothing but solve A x = b for their two inputs, as the Newton step of a model with one dense group of
// unknowns does: the solver is called without the package around it, which takes as long as a small system.
#pragma once

#include <vector>

#include "capi/package/graph.h"
#include "capi/package/operator_node.h"
#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Does the package have the inputs and the output of a linear solve, call that operator, and have no code of its own?
// What it then gives for sample_systems() tells the rest.
bool may_only_solve(const Signature& signature, const std::vector<OperatorNode>& nodes);

// Regular A without any symmetry, and b.
Vector<Tensor> sample_systems(const std::vector<InputSpec>& inputs);

// The output of such a package. Throws std::exception where the shapes do not fit, and where a matrix is singular and
// `singular` is null.
Tensor solve_linear(const Tensor& a, const Tensor& b, SingularInfo* singular);

}  // namespace neml2_capi::aoti
