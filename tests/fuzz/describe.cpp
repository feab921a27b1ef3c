// A whole artifact in memory, by the C ABI: the archive, its metadata, what it holds.
#include "neml2_capi.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/zip.h"

using namespace neml2_capi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;  // that is no content, an argument's fault
  neml2_source source{};
  source.size = sizeof source;
  source.content = data;
  source.content_size = static_cast<std::int64_t>(size);
  static std::vector<char> buffer(1 << 16);
  std::int64_t needed = 0;
  fuzz::read_untrusted([&] {
    const auto capacity = static_cast<std::int64_t>(buffer.size());
    const std::int32_t status = neml2_source_describe(buffer.data(), capacity, &needed, &source);
    if (status == NEML2_OK) return;
    neml2_error_message(buffer.data(), capacity, nullptr);
    throw Error(status, "", buffer.data());
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity,
                                               unsigned seed) {
  return fuzz::mutate_zip(data, size, capacity, seed);
}
