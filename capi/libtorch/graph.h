// Packages on libtorch.
#pragma once

#include <string_view>
#include <vector>

#include "capi/packages/elsewhere.h"

namespace neml2_capi::aoti::libtorch {

// Returns a copy of the package's object whose calls go to libtorch. Throws Error as Library::get() does, and
// NEML2_ERROR_UNSUPPORTED with all that libtorch lacks.
Bound bind(std::string_view object, const std::vector<OperatorNode>& nodes);

}  // namespace neml2_capi::aoti::libtorch
