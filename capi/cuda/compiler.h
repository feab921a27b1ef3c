// NVRTC: CUDA C++ becomes machine code of one architecture. No GPU is needed.
#pragma once

#include <string>
#include <string_view>

namespace neml2_capi::cuda {

// Returns a cubin for an architecture, "sm_90". Throws NEML2_ERROR_UNSUPPORTED if there is no compiler, or it does not
// know the architecture; NEML2_ERROR_ARTIFACT with its log for a text that does not compile.
std::string compile(std::string_view text, const std::string& architecture);

// All that a cubin depends on besides its text: the compiler's version and options.
std::string compiler_key(const std::string& architecture);

}  // namespace neml2_capi::cuda
