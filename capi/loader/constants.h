// Replacement of a package's constants.
#pragma once

#include <vector>

#include "capi/graph/graph.h"
#include "capi/loader/container.h"

namespace neml2_capi::aoti {

using graph::Constant;

// Replaces the constant of that name. The value is copied if `copy` is true, or if it does not lie in memory as
// the package has it. Throws NEML2_ERROR_NAME, _DTYPE, _SHAPE, and then changes nothing.
void replace(std::vector<PackagedConstant>& constants, const Constant& value, bool copy);

}  // namespace neml2_capi::aoti
