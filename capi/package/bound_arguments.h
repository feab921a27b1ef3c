// Arguments of one call site of an operator, matched with the operator's schema.
#pragma once

#include <vector>

#include "capi/package/operator_node.h"
#include "capi/package/operator_schema.h"

namespace neml2_capi::aoti {

struct BoundArgument {
  Type type;
  Argument value;           // as the package records it, or the schema's default
  bool is_default = false;  // a default holds its integers, which else come at run time
};

// Returns an argument for each parameter of the schema. Throws Error NEML2_ERROR_UNSUPPORTED, with the argument, if
// one does not fit, or a result is no tensor. `problem` ends the message: "libtorch does not take. Write it without.".
std::vector<BoundArgument> bind_arguments(const OperatorNode& node, const OperatorSchema& schema, const char* problem);

}  // namespace neml2_capi::aoti
