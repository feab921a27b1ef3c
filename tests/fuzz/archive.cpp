// Reader of zip archives: a package in memory, the directory's checksum, an artifact as a folder in memory.
#include "capi/archive/archive.h"

#include "capi/archive/crc32.h"
#include "capi/archive/files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/zip.h"

using namespace neml2_capi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::read_untrusted([&] {
    const archive::Archive read("package.pt2", bytes);
    for (const char* suffix : {".wrapper.so", ".wrapper.cpp", ".json", "version"}) {
      try {
        read.find(suffix);
      } catch (const Error&) {  // several entries of this name
      }
    }
    for (const auto& [name, content] : read.find_all("")) {
      fuzz::require(content.data() >= bytes.data() && content.data() + content.size() <= bytes.data() + bytes.size(),
                    "an entry lies within its archive");
      archive::crc32(content);
    }
  });
  fuzz::read_untrusted([&] {
    const archive::Mount mount(bytes);
    archive::is_folder(mount.path() / "cpu");
    for (const auto& [name, content] : mount.files()) archive::read(mount.path() / name);
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity,
                                               unsigned seed) {
  return fuzz::mutate_zip(data, size, capacity, seed);
}
