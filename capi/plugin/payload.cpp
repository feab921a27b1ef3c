#include "capi/plugin/payload.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <neml2_capi.hpp>

// The linker puts it where the file begins in memory.
extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start;

namespace neml2_capi::plugin {
namespace {

constexpr char MAGIC[16] = "neml2 artifact\n";  // with its zero

// The beginning of the segment; the three parts follow, one behind the other.
struct Head {
  char magic[16];
  std::uint64_t sizes[3];
};

}  // namespace

Payload payload() {
  const char* base = reinterpret_cast<const char*>(&__ehdr_start);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + __ehdr_start.e_phoff);
  for (int i = 0; i < __ehdr_start.e_phnum; ++i) {
    const ElfW(Phdr)& segment = segments[i];
    const char* begin = base + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || segment.p_filesz < sizeof(Head) || std::memcmp(begin, MAGIC, sizeof MAGIC) != 0)
      continue;
    Head head;
    std::memcpy(&head, begin, sizeof head);
    const char* part = begin + sizeof head;
    std::string_view parts[3];
    for (int p = 0; p < 3; ++p) {
      parts[p] = {part, head.sizes[p]};
      part += head.sizes[p];
    }
    return {parts[0], parts[1], parts[2]};
  }
  throw neml2::Error(NEML2_ERROR_FILE, "", "The library has no artifact: make one with neml2-capi plugin ARTIFACT.");
}

}  // namespace neml2_capi::plugin
