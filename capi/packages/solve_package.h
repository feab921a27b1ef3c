// Packages that do nothing but solve A x = b for their two inputs, as the Newton step of a model with one dense group
// of unknowns does. The solver is called without the package around it, which takes as long as a small system.
#pragma once

#include <vector>

#include "capi/graph/graph.h"
#include "capi/package/operator_node.h"
#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Tells whether the package has the inputs and the output of a linear solve, calls that operator, and has no code of
// its own. Its result for sample_systems() tells the rest.
bool may_only_solve(const Signature& signature, const std::vector<OperatorNode>& nodes);

// Returns regular A without any symmetry, and b.
Vector<Tensor> sample_systems(const std::vector<InputSpec>& inputs);

}  // namespace neml2_capi::aoti
