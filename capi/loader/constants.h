// Other values for the constants of a package.
#pragma once

#include <vector>

#include "capi/loader/container.h"
#include "capi/package/graph.h"

namespace neml2_capi::aoti {

// Put the value in the place of that of its name. It is laid out as the package has it, and copied where it is not, or
// where `copy` is true. Throws NEML2_ERROR_NAME, _DTYPE, _SHAPE; nothing is changed then.
void replace(std::vector<PackagedConstant>& constants, const Constant& value, bool copy);

}  // namespace neml2_capi::aoti
