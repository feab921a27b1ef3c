#include "capi/loader/elf_checks.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>

#include "capi/base/limits.h"
#include "capi/loader/elf_tables.h"

namespace neml2_capi::aoti::elf {
namespace {

// Tells whether memory of the loaded object holds the bytes; with `flags`, in a segment that has them.
bool is_loaded(const File& file, std::uint64_t address, std::uint64_t size, Elf64_Word flags = 0,
               std::uint64_t page = 1) {
  return std::any_of(file.loaded().begin(), file.loaded().end(), [&](const Elf64_Phdr& segment) {
    const std::uint64_t end = (segment.p_vaddr + segment.p_memsz + page - 1) / page * page;  // of its last page
    const std::uint64_t memory = end - segment.p_vaddr;
    return (segment.p_flags & flags) == flags && address >= segment.p_vaddr && address - segment.p_vaddr <= memory &&
           size <= memory - (address - segment.p_vaddr);
  });
}

void check_loaded_segments(const File& file) {
  std::uint64_t end = 0;
  if (file.loaded().empty()) malformed("it has no segments");
  for (const Elf64_Phdr& segment : file.loaded()) {
    file.range(segment.p_offset, segment.p_filesz);
    if (segment.p_filesz > segment.p_memsz) malformed("a segment has more bytes in the file than in memory");
    if (segment.p_vaddr < end) malformed("its segments are out of order");
    end = File::sum(segment.p_vaddr, segment.p_memsz);
    if (end > limits::image_bytes) malformed(join("it asks for more than ", limits::image_bytes, " bytes of memory"));
    if (segment.p_align > 1 &&
        (!std::has_single_bit(segment.p_align) || (segment.p_vaddr - segment.p_offset) % segment.p_align != 0))
      malformed("a segment is not aligned");
  }
}

void check_other_segments(const File& file) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (const Elf64_Phdr& segment : file.segments()) switch (segment.p_type) {
      case PT_DYNAMIC:
        if (file.offset_of(segment.p_vaddr, segment.p_filesz) != segment.p_offset ||
            !is_loaded(file, segment.p_vaddr, segment.p_filesz, PF_W))
          malformed("its dynamic section is not where it is loaded");
        break;
      case PT_TLS:
        file.offset_of(segment.p_vaddr, std::min(segment.p_filesz, segment.p_memsz));
        if (segment.p_filesz > segment.p_memsz || segment.p_memsz > limits::thread_bytes ||
            (segment.p_align > 1 && (!std::has_single_bit(segment.p_align) || segment.p_align > limits::thread_bytes)))
          malformed("its thread-local storage has an impossible size");
        break;
      case PT_GNU_RELRO:
        if (!is_loaded(file, segment.p_vaddr, segment.p_memsz, 0, page))
          malformed("it protects memory outside of its segments");
        break;
      case PT_NOTE:
      case PT_PHDR:
      case PT_GNU_PROPERTY:
      case PT_GNU_EH_FRAME:
        if (segment.p_memsz > 0) file.offset_of(segment.p_vaddr, std::max(segment.p_filesz, segment.p_memsz));
        break;
      default: break;
    }
}

// The dynamic loader takes the last entry of a kind, and this library the first.
void check_entries(const File& file, const DynamicSection& dynamic) {
  std::set<Elf64_Sxword> tags;
  for (std::uint64_t i = 0; i < dynamic.size(); ++i)
    if (const Elf64_Sxword tag = dynamic.at(i).d_tag; tag != DT_NEEDED && !tags.insert(tag).second)
      malformed("its dynamic section has an entry twice");
  const auto require = [&](Elf64_Sxword tag, std::uint64_t size, Elf64_Word flags = 0) {
    if (const auto address = dynamic.find(tag); address && !is_loaded(file, *address, size, flags))
      malformed("its dynamic section leads outside of its segments");
  };
  const auto sized = [&](Elf64_Sxword tag, Elf64_Sxword size) {
    if (dynamic.find(tag)) require(tag, dynamic.get(size, "size of a table"));
  };
  const auto entry_size = [&](Elf64_Sxword table, Elf64_Sxword tag, std::uint64_t size) {
    if (dynamic.find(table) && dynamic.get(tag, "size of an entry") != size) malformed("a table has strange entries");
  };
  for (const Elf64_Sxword function : {DT_INIT, DT_FINI}) require(function, 1, PF_X);
  require(DT_PLTGOT, 0);
  sized(DT_INIT_ARRAY, DT_INIT_ARRAYSZ);
  sized(DT_FINI_ARRAY, DT_FINI_ARRAYSZ);
  sized(DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ);
  entry_size(DT_SYMTAB, DT_SYMENT, sizeof(Elf64_Sym));
  entry_size(DT_RELA, DT_RELAENT, sizeof(Elf64_Rela));
  entry_size(DT_RELR, DT_RELRENT, sizeof(Elf64_Relr));
  entry_size(DT_JMPREL, DT_PLTREL, DT_RELA);
  const std::uint64_t size = dynamic.get(DT_STRSZ, "DT_STRSZ");
  const std::uint64_t strings = file.offset_of(dynamic.get(DT_STRTAB, "DT_STRTAB"), size);
  if (size == 0 || file.range(strings, size).back() != '\0') malformed("its names have no end");
  for (std::uint64_t i = 0; i < dynamic.size(); ++i) {
    const Elf64_Dyn entry = dynamic.at(i);
    for (const Elf64_Sxword name : {DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_AUXILIARY, DT_FILTER})
      if (entry.d_tag == name && entry.d_un.d_val >= size) malformed("a name lies outside of its string table");
  }
}

}  // namespace

void check_loadable(const File& file, const DynamicSection& dynamic) {
  check_loaded_segments(file);
  check_other_segments(file);
  check_entries(file, dynamic);
  const std::uint64_t symbols = check_symbols(file, dynamic);
  check_versions(file, dynamic, symbols);
  check_relocations(file, dynamic, symbols);
}

}  // namespace neml2_capi::aoti::elf
