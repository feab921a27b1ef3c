// The schemas of operators: what the dispatcher must be given cannot be told from a package alone, which records values
// and no types, and leaves defaults out.
#pragma once

#include <string>
#include <string_view>

#include "capi/package/operator_schema.h"

namespace neml2_capi::aoti::libtorch {

// Make the schema of a custom operator known to this process. Throws as parse_schema() does.
void declare(std::string_view schema);

// That of "aten::pow.Tensor_Tensor": as it was declared, else as the files say that torch's Python package keeps of its
// own operators. Throws Error NEML2_ERROR_UNSUPPORTED, with what to do, where neither says.
OperatorSchema schema_of(const std::string& target);

}  // namespace neml2_capi::aoti::libtorch
