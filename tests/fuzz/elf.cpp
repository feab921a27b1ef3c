// Reader and editor of a package's shared object, both ways of binding it, and what it asks of the machine.
#include "capi/loader/elf.h"

#include <elf.h>

#include <cstring>
#include <iterator>
#include <random>

#include "capi/loader/isa.h"
#include "tests/fuzz/fuzz.h"

using namespace neml2_capi;

namespace {

constexpr std::string_view provider = "libn2abcdefg.so";

// Offsets and sizes at which checks decide.
std::uint64_t telling(std::minstd_rand& random, std::uint64_t size) {
  const std::uint64_t values[] = {0, 1, 8, 16, size - 1, size, size + 1, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
  return random() % 3 == 0 ? random() % (size + 1) : values[random() % std::size(values)];
}

// Changes a field of the header, of a program header or of the dynamic section, which lie apart in a file of zeros.
void change_field(std::uint8_t* data, std::size_t size, std::minstd_rand& random) {
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof header);
  const auto put = [&](std::uint64_t at, std::size_t width) {
    const std::uint64_t value = telling(random, size);
    if (at <= size && width <= size - at) std::memcpy(data + at, &value, width);
  };
  const auto segment_at = [&](std::uint64_t i) { return header.e_phoff + i * sizeof(Elf64_Phdr); };
  const std::uint64_t chosen = segment_at(random() % (header.e_phnum + 1u));
  switch (random() % 4) {
    case 0: return put(random() % sizeof header / 8 * 8, random() % 2 ? 8 : 2);
    case 1: return put(chosen + random() % sizeof(Elf64_Phdr) / 8 * 8, 8);
    default: break;
  }
  for (std::uint64_t i = 0; i < header.e_phnum && i < 64; ++i) {
    Elf64_Phdr segment{};
    if (segment_at(i) > size || sizeof segment > size - segment_at(i)) return;
    std::memcpy(&segment, data + segment_at(i), sizeof segment);
    if (segment.p_type != PT_DYNAMIC || segment.p_filesz < sizeof(Elf64_Dyn)) continue;
    const std::uint64_t entry =
        segment.p_offset + random() % (segment.p_filesz / sizeof(Elf64_Dyn)) * sizeof(Elf64_Dyn);
    Elf64_Dyn dynamic{};
    if (entry > size || sizeof dynamic > size - entry) return;
    std::memcpy(&dynamic, data + entry, sizeof dynamic);
    // The value; or something in the table that it leads to, since packages are loaded where they lie in the file.
    if (random() % 2) return put(entry + 8, 8);
    return put(dynamic.d_un.d_val + random() % 256, std::size_t{1} << random() % 4);
  }
}

// Mends the fields that every object has, without which nothing else is read.
void mend(std::uint8_t* data, std::size_t size) {
  Elf64_Ehdr header;
  if (size < sizeof header) return;
  std::memcpy(&header, data, sizeof header);
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
#if defined(__x86_64__)
  header.e_machine = EM_X86_64;
#else
  header.e_machine = EM_AARCH64;
#endif
  header.e_phentsize = sizeof(Elf64_Phdr);
  if (header.e_phoff >= size) header.e_phoff = sizeof header;
  header.e_phnum =
      static_cast<Elf64_Half>(std::min<std::uint64_t>(header.e_phnum, (size - header.e_phoff) / sizeof(Elf64_Phdr)));
  std::memcpy(data, &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::read_untrusted([&] {
    const aoti::Object object = aoti::bind_to_provider(bytes, provider);
    fuzz::require(object.bytes.size() == bytes.size(), "no byte moves");
    object.versions.check();
    aoti::check_processor({"cpu", "x86_64", "AVX2"}, object.producers);
  });
  fuzz::read_untrusted([&] {
    const auto address_of = [](const std::string& name) -> std::uintptr_t { return name.size() % 2 * 4096; };
    const aoti::Object object = aoti::bind_to_addresses(bytes, provider, address_of);
    fuzz::require(object.bytes.size() == bytes.size(), "no byte moves");
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity,
                                               unsigned seed) {
  std::minstd_rand random(seed);
  if (size < sizeof(Elf64_Ehdr) || random() % 3 == 0) {
    size = LLVMFuzzerMutate(data, size, capacity);
  } else {
    for (auto changes = 1 + random() % 3; changes > 0; --changes) change_field(data, size, random);
  }
  if (random() % 8) mend(data, size);
  return size;
}
