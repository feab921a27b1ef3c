// Symbols by which the source of a package names sizes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "capi/package/signature.h"

namespace neml2_capi::aoti {

struct SizeSymbols {
  std::vector<std::vector<Axis>> equal_axes;      // groups of dynamic axes that have one size
  std::map<std::string, Axis, std::less<>> axes;  // for every name, an axis of an input that has the size
};

// Reads the symbols in the body of run_impl. Throws Error NEML2_ERROR_ARTIFACT for the size of an axis that an input
// does not have, NEML2_ERROR_UNSUPPORTED for an input with strides of its own.
SizeSymbols read_symbols(std::string_view body, const std::vector<InputSpec>& inputs);

}  // namespace neml2_capi::aoti
