// What a package's own source says about its inputs and outputs.
#pragma once

#include <string_view>

#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Read the text of a package's *.wrapper.cpp: its metadata says nothing about sizes, but the source states what each
// input must be, in checks that are compiled in and usually off. Throws Error NEML2_ERROR_ARTIFACT, naming the input,
// where the text cannot be understood, NEML2_ERROR_UNSUPPORTED for an input that has gaps, or is on another device than
// the CPU and CUDA, or than the others.
Signature read_signature(std::string_view source);

}  // namespace neml2_capi::aoti
