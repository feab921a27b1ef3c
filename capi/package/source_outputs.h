// What a package's source says about its outputs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Follow each output back through the body of run_impl to where its tensor is made. What operators outside of the
// package return has no element type there.
std::vector<OutputSpec> read_outputs(std::string_view source, std::string_view run, std::int64_t count,
                                     const std::vector<InputSpec>& inputs);

}  // namespace neml2_capi::aoti
