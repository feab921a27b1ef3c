// Operators that a package calls instead of compiling them: its *.wrapper.json.
#pragma once

#include <string_view>
#include <vector>

#include "capi/package/operator_node.h"

namespace neml2_capi::aoti {

// Parses the operators, in the order of the indices by which the package calls them. `function` is left to the
// provider. `source` is the text of its *.wrapper.cpp, which tells what outputs are read. Throws Error
// NEML2_ERROR_ARTIFACT if the list is malformed.
std::vector<OperatorNode> parse_extern_nodes(std::string_view json, std::string_view source);

}  // namespace neml2_capi::aoti
