// Takes eight bytes at a time: packages have megabytes, and loading should take a millisecond.
#include "capi/archive/crc32.h"

#include <array>
#include <atomic>
#include <cstring>

#include "capi/base/once.h"

namespace neml2_capi::archive {
namespace {

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0u);
    tables[0][byte] = crc;
  }
  for (std::size_t table = 1; table < 8; ++table)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[table - 1][byte];
      tables[table][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  return tables;
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
  static constinit std::atomic<const CrcTables*> found = nullptr;  // 10 µs, once, instead of 8 KB of the library
  const CrcTables& crc_tables = once(found, make_crc_tables);
  std::uint32_t crc = ~0u;
  while (bytes.size() >= 8) {
    std::uint32_t low, high;
    std::memcpy(&low, bytes.data(), 4);
    std::memcpy(&high, bytes.data() + 4, 4);
    low ^= crc;
    crc = crc_tables[7][low & 0xff] ^ crc_tables[6][low >> 8 & 0xff] ^ crc_tables[5][low >> 16 & 0xff] ^
          crc_tables[4][low >> 24] ^ crc_tables[3][high & 0xff] ^ crc_tables[2][high >> 8 & 0xff] ^
          crc_tables[1][high >> 16 & 0xff] ^ crc_tables[0][high >> 24];
    bytes.remove_prefix(8);
  }
  for (const char byte : bytes) crc = (crc >> 8) ^ crc_tables[0][(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

}  // namespace neml2_capi::archive
