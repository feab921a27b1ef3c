// Signature of a package, read from its own source.
#pragma once

#include <string_view>

#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Reads the text of a package's *.wrapper.cpp. The metadata tells no sizes, but the source states them for each input,
// in checks that are compiled in and usually off. Throws Error NEML2_ERROR_ARTIFACT, with the input, for a text that
// cannot be understood, NEML2_ERROR_UNSUPPORTED for an input that has gaps, is on a device other than the CPU and CUDA,
// or on another device than the first input.
Signature read_signature(std::string_view source);

}  // namespace neml2_capi::aoti
