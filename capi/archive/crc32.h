// CRC-32 (IEEE 802.3), the checksum of a zip archive.
#pragma once

#include <cstdint>
#include <string_view>

namespace neml2_capi::archive {

std::uint32_t crc32(std::string_view bytes);

}  // namespace neml2_capi::archive
