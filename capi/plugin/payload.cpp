#include "capi/plugin/payload.h"

#if defined(_WIN32)
#include <windows.h>
#elif defined(__APPLE__)
#include <dlfcn.h>
#include <mach-o/loader.h>
#else
#include <link.h>
#endif

#include <cstdint>
#include <cstring>
#include <neml2_capi.hpp>

#if defined(_WIN32)
extern "C" const IMAGE_DOS_HEADER __ImageBase;  // of this library, by the linker
#endif

namespace neml2_capi::plugin {
namespace {

constexpr char MAGIC[16] = "neml2 artifact\n";  // with its zero

// The beginning of the segment; the three parts follow, one behind the other.
struct Head {
  char magic[16];
  std::uint64_t sizes[3];
};

// Returns the head at the beginning of mapped memory, if there is one; the magic alone may be there by chance.
const Head* head_at(const char* memory, std::uint64_t size) {
  const auto* head = reinterpret_cast<const Head*>(memory);
  if (size < sizeof *head || std::memcmp(head->magic, MAGIC, sizeof MAGIC) != 0) return nullptr;
  std::uint64_t rest = size - sizeof *head;
  for (const std::uint64_t part : head->sizes) {
    if (part > rest) return nullptr;
    rest -= part;
  }
  return head;
}

#if defined(_WIN32)
const Head* find() {
  const char* base = reinterpret_cast<const char*>(&__ImageBase);
  const auto* headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + __ImageBase.e_lfanew);
  const IMAGE_SECTION_HEADER* section = IMAGE_FIRST_SECTION(headers);
  for (int i = 0; i < headers->FileHeader.NumberOfSections; ++i, ++section)
    if (const Head* head = head_at(base + section->VirtualAddress, section->Misc.VirtualSize)) return head;
  return nullptr;
}
#elif defined(__APPLE__)
const Head* find() {
  Dl_info library;
  if (!dladdr(MAGIC, &library)) return nullptr;
  const auto* header = static_cast<const mach_header_64*>(library.dli_fbase);
  const auto* command = reinterpret_cast<const load_command*>(header + 1);
  for (std::uint32_t i = 0; i < header->ncmds; ++i) {
    const auto* segment = reinterpret_cast<const segment_command_64*>(command);
    if (command->cmd == LC_SEGMENT_64 && std::strcmp(segment->segname, "__NEML2") == 0)
      // A library begins at the address 0.
      return head_at(reinterpret_cast<const char*>(header) + segment->vmaddr, segment->filesize);
    command = reinterpret_cast<const load_command*>(reinterpret_cast<const char*>(command) + command->cmdsize);
  }
  return nullptr;
}
#else
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
    if (segment.p_type != PT_LOAD) continue;
    const auto* memory = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    if (const Head* head = head_at(memory, segment.p_filesz)) *static_cast<const Head**>(found) = head;
  }
  return 1;
}

const Head* find() {
  const Head* head = nullptr;
  dl_iterate_phdr(look, &head);
  return head;
}
#endif

}  // namespace

Payload payload() {
  const Head* head = find();
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
