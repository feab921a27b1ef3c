// Outputs of a package, read from its own source.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Follows each output back through the body of run_impl to the line that makes its tensor. The source tells no element
// types of tensors that operators outside of the package return.
std::vector<OutputSpec> read_outputs(std::string_view source, std::string_view run, std::int64_t count,
                                     const std::vector<InputSpec>& inputs);

}  // namespace neml2_capi::aoti
