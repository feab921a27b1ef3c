// SHA-256 (FIPS 180-4), by which kernels.json tells the objects that it describes.
#pragma once

#include <string>
#include <string_view>

namespace neml2_capi::archive {

// Returns 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace neml2_capi::archive
