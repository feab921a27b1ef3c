#include "capi/plugin/payload.h"

#include <link.h>

#include <cstdint>
#include <cstring>
#include <neml2_capi.hpp>

namespace neml2_capi::plugin {
namespace {

constexpr char MAGIC[16] = "neml2 artifact\n";  // with its zero

// The beginning of the segment; the three parts follow, one behind the other.
struct Head {
  char magic[16];
  std::uint64_t sizes[3];
};

// Whether the loader mapped an address with this object.
bool holds(const dl_phdr_info& object, const void* address) {
  const auto place = reinterpret_cast<ElfW(Addr)>(address) - object.dlpi_addr;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && place - segment.p_vaddr < segment.p_memsz) return true;
  }
  return false;
}

// `found` gets the head of the artifact of this library, if it has one. The loader knows the segments wherever a
// program like patchelf has moved their table in the file.
int look(dl_phdr_info* object, std::size_t, void* found) {
  if (!holds(*object, MAGIC)) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const auto* head = reinterpret_cast<const Head*>(object->dlpi_addr + segment.p_vaddr);
    if (segment.p_type != PT_LOAD || segment.p_filesz < sizeof *head ||
        std::memcmp(head->magic, MAGIC, sizeof MAGIC) != 0)
      continue;
    std::uint64_t rest = segment.p_filesz - sizeof *head;
    bool fits = true;  // the magic alone may begin a segment by chance
    for (const std::uint64_t size : head->sizes) {
      fits = fits && size <= rest;
      rest -= size;
    }
    if (fits) *static_cast<const Head**>(found) = head;
  }
  return 1;
}

}  // namespace

Payload payload() {
  const Head* head = nullptr;
  dl_iterate_phdr(look, &head);
  if (!head)
    throw neml2::Error(NEML2_ERROR_FILE, "", "The library has no artifact: make one with neml2-capi plugin ARTIFACT.");
  const char* part = reinterpret_cast<const char*>(head + 1);
  std::string_view parts[3];
  for (int p = 0; p < 3; ++p) {
    parts[p] = {part, head->sizes[p]};
    part += head->sizes[p];
  }
  return {parts[0], parts[1], parts[2]};
}

}  // namespace neml2_capi::plugin
