// Schemas of operators, which the dispatcher's arguments follow: a package records values without types, and leaves
// defaults out.
#pragma once

#include <string>
#include <string_view>

#include "capi/package/operator_schema.h"

namespace neml2_capi::aoti::libtorch {

// Makes the schema of a custom operator known to this process. Throws as parse_schema() does.
void declare(std::string_view schema);

// Returns the schema of "aten::pow.Tensor_Tensor": the declared one, else the one listed by torch's Python package.
// Throws Error NEML2_ERROR_UNSUPPORTED for an unknown operator.
OperatorSchema schema_of(const std::string& target);

}  // namespace neml2_capi::aoti::libtorch
