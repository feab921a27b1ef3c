// The arguments of one call site of an operator, matched with the operator's schema.
#pragma once

#include <vector>

#include "capi/package/operator_node.h"
#include "capi/package/operator_schema.h"

namespace neml2_capi::aoti {

struct BoundArgument {
  Type type;
  Argument value;           // as the package records it, or of the default
  bool is_default = false;  // integers are in it; else they come at run time
};

// One for each parameter of the schema. Throws Error NEML2_ERROR_UNSUPPORTED, naming the argument, where they do not
// fit one another, or a result is no tensor; it says which, and `so`: "libtorch does not take: write it without".
std::vector<BoundArgument> bind_arguments(const OperatorNode& node, const OperatorSchema& schema, const char* so);

}  // namespace neml2_capi::aoti
