#include "capi/loader/elf_file.h"

#include <algorithm>
#include <utility>

#include "capi/base/limits.h"

namespace neml2_capi::aoti::elf {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half this_machine = EM_AARCH64;
#else
#error "The built-in provider knows x86_64 and aarch64 only."
#endif

}  // namespace

void malformed(const std::string& what) {
  throw Error(NEML2_ERROR_ARTIFACT, "",
              join("The shared object in the package is malformed: ", what, ". Compile or copy the package again."));
}

File::File(Bytes&& bytes) : bytes_(std::move(bytes)) {
  const auto header = read<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) malformed("it is not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN)
    malformed("it is not a 64-bit little-endian shared object");
  if (header.e_machine != this_machine)
    throw Error(NEML2_ERROR_UNSUPPORTED, "",
                join("The package holds code for another machine (ELF machine ", header.e_machine, ", this one is ",
                     this_machine, "). Compile the model on, or for, this machine."));
  if (header.e_phentsize != sizeof(Elf64_Phdr)) malformed("its program headers have an unknown size");
  if (header.e_phnum > limits::segments)
    malformed(join("it has ", header.e_phnum, " segments, expected at most ", limits::segments));
  for (Elf64_Half i = 0; i < header.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(sum(header.e_phoff, i * sizeof(Elf64_Phdr)));
    segments_.push_back(segment);
    if (segment.p_type == PT_LOAD) loaded_.push_back(segment);
    if (segment.p_type == PT_DYNAMIC) dynamic_ = segment;
  }
}

std::uint64_t File::offset_of(std::uint64_t address, std::uint64_t size) const {
  for (const Elf64_Phdr& segment : loaded_) {
    if (address < segment.p_vaddr) continue;
    const std::uint64_t within = address - segment.p_vaddr;
    if (within > segment.p_filesz || size > segment.p_filesz - within) continue;
    const std::uint64_t offset = sum(segment.p_offset, within);
    range(offset, size);
    return offset;
  }
  malformed("an address leads outside of its segments");
}

DynamicSection::DynamicSection(File& file) : file_(file) {
  if (!file.dynamic()) malformed("it has no dynamic section");
  start_ = file.dynamic()->p_offset;
  const std::uint64_t capacity = file.dynamic()->p_filesz / sizeof(Elf64_Dyn);
  file.range(start_, capacity * sizeof(Elf64_Dyn));
  while (used_ < capacity && at(used_).d_tag != DT_NULL) ++used_;
  if (used_ == capacity) malformed("its dynamic section has no end");
  has_spare_ = used_ + 1 < capacity && at(used_ + 1).d_tag == DT_NULL;
}

std::uint64_t count_symbols(const File& file, const DynamicSection& dynamic) {
  const auto gnu = dynamic.find(DT_GNU_HASH);
  if (!gnu) {
    const std::uint64_t table = dynamic.get(DT_HASH, "hash table");
    return file.read_at<std::uint32_t>(File::sum(table, 4));
  }
  struct Header {
    std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
  };
  const auto header = file.read_at<Header>(*gnu);
  const std::uint64_t buckets = File::sum(*gnu, sizeof(Header) + 8ull * header.bloom_words);
  const std::uint64_t buckets_size = 4ull * header.buckets;
  const std::uint64_t offset = file.offset_of(buckets, buckets_size);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < header.buckets; ++i)
    last = std::max<std::uint64_t>(last, file.read<std::uint32_t>(offset + 4 * i));
  if (last < header.first_symbol) return header.first_symbol;  // none is defined
  // The chain of the last bucket ends with the last symbol, whose lowest bit is set.
  const std::uint64_t chains = File::sum(buckets, buckets_size);
  while ((file.read_at<std::uint32_t>(File::sum(chains, 4 * (last - header.first_symbol))) & 1) == 0) ++last;
  return last + 1;
}

}  // namespace neml2_capi::aoti::elf
