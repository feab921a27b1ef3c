#include "capi/loader/elf_tables.h"

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "capi/base/limits.h"

namespace neml2_capi::aoti::elf {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t relocation_relative = R_X86_64_RELATIVE, relocation_copy = R_X86_64_COPY,
                        relocation_descriptor = R_X86_64_TLSDESC;
#else
constexpr std::uint32_t relocation_relative = R_AARCH64_RELATIVE, relocation_copy = R_AARCH64_COPY,
                        relocation_descriptor = R_AARCH64_TLSDESC;
#endif

// Hash table of GNU's style: a filter, buckets, and chains that end with an odd number.
std::uint64_t check_gnu_hash(const File& file, const DynamicSection& dynamic, std::uint64_t table) {
  struct Header {
    std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
  };
  const auto header = file.read_at<Header>(table);
  const std::uint64_t filter = 8ull * header.bloom_words, buckets_size = 4ull * header.buckets;
  if (!std::has_single_bit(header.bloom_words) || header.bloom_shift >= 32)
    malformed("its hash table has a strange filter");
  const std::uint64_t begin = file.offset_of(table, sizeof header + filter + buckets_size);
  for (std::uint64_t i = 0; i < header.buckets; ++i) {
    const auto bucket = file.read<std::uint32_t>(begin + sizeof header + filter + 4 * i);
    if (bucket != 0 && bucket < header.first_symbol) malformed("its hash table leads to a symbol that is not defined");
  }
  return count_symbols(file, dynamic);
}

// Hash table of System V's style: buckets, and chains that end with 0.
std::uint64_t check_hash(const File& file, std::uint64_t table) {
  const auto buckets = file.read_at<std::uint32_t>(table);
  const auto count = file.read_at<std::uint32_t>(File::sum(table, 4));
  const std::uint64_t begin = file.offset_of(table, 8 + 4 * (std::uint64_t{buckets} + count)) + 8;
  const auto next = [&](std::uint64_t i) {
    const auto symbol = file.read<std::uint32_t>(begin + 4 * i);
    if (symbol >= count && count > 0) malformed("its hash table leads to a symbol that is not there");
    return symbol;
  };
  std::vector<std::uint32_t> seen(count);  // by which bucket's walk, from 1 on
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket)
    for (std::uint32_t at = next(bucket); at != 0 && count > 0; at = next(std::uint64_t{buckets} + at)) {
      if (seen[at] == bucket + 1) malformed("its hash table has a chain without an end");
      if (seen[at] != 0) break;
      seen[at] = bucket + 1;
    }
  return count;
}

std::string_view name_at(const File& file, const DynamicSection& dynamic, std::uint64_t name) {
  const std::uint64_t size = dynamic.get(DT_STRSZ, "DT_STRSZ");
  if (name >= size) malformed("a name lies outside of its string table");
  const std::uint64_t begin = file.offset_of(dynamic.get(DT_STRTAB, "DT_STRTAB"), size);
  const std::string_view text = file.range(begin + name, std::min<std::uint64_t>(size - name, limits::name_characters));
  const std::size_t end = text.find('\0');
  if (end == std::string_view::npos) malformed("the name of a library is too long");
  return text.substr(0, end);
}

// A version is compared by its hash first. One with the hash 0 equals the one of unversioned symbols, which has no name.
void check_hash_of_version(std::string_view name, std::uint32_t told) {
  std::uint32_t hash = 0;
  for (const char character : name) {
    hash = (hash << 4) + static_cast<unsigned char>(character);
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  if (hash == 0 || hash != told) malformed("a version has another hash than its name");
}

// Checks the place that a relocation is written to.
void check_place(const File& file, std::uint64_t address, std::uint64_t size) {
  for (const Elf64_Phdr& segment : file.loaded())
    if ((segment.p_flags & PF_W) && address >= segment.p_vaddr && segment.p_memsz >= size &&
        address - segment.p_vaddr <= segment.p_memsz - size)
      return;
  malformed("a relocation leads outside of its writable segments");
}

void check_table(const File& file, std::uint64_t address, std::uint64_t size, std::uint64_t relative,
                 std::uint64_t symbols) {
  if (size % sizeof(Elf64_Rela) != 0) malformed("its relocations end in the midst of one");
  const std::uint64_t begin = file.offset_of(address, size);
  for (std::uint64_t i = 0; i < size / sizeof(Elf64_Rela); ++i) {
    const auto entry = file.read<Elf64_Rela>(begin + i * sizeof(Elf64_Rela));
    const std::uint64_t type = ELF64_R_TYPE(entry.r_info);
    if (i < relative && type != relocation_relative) malformed("its relative relocations do not come first");
    if (type == 0) continue;
    if (type == relocation_copy) malformed("it copies a variable of another library");
    if (ELF64_R_SYM(entry.r_info) >= symbols && ELF64_R_SYM(entry.r_info) != 0)
      malformed("a relocation takes a symbol that is not there");
    check_place(file, entry.r_offset, type == relocation_descriptor ? 16 : 8);
  }
}

// Relative relocations in short: an address, then bit fields of the 63 words that follow.
void check_short_table(const File& file, std::uint64_t address, std::uint64_t size) {
  constexpr std::uint64_t word = 8, bits = 63;
  const std::uint64_t begin = file.offset_of(address, size);
  std::uint64_t place = 0;
  for (std::uint64_t i = 0; i < size / word; ++i) {
    const auto entry = file.read<std::uint64_t>(begin + i * word);
    if ((entry & 1) == 0) {
      check_place(file, entry, word);
      place = entry + word;
      continue;
    }
    for (std::uint64_t bit = 0; bit < bits; ++bit)
      if ((entry >> (bit + 1)) & 1) check_place(file, place + bit * word, word);
    place += bits * word;
  }
}

}  // namespace

std::uint64_t check_symbols(const File& file, const DynamicSection& dynamic) {
  const auto gnu = dynamic.find(DT_GNU_HASH);
  const std::uint64_t count =
      gnu ? check_gnu_hash(file, dynamic, *gnu) : check_hash(file, dynamic.get(DT_HASH, "hash table"));
  const std::uint64_t table = file.offset_of(dynamic.get(DT_SYMTAB, "DT_SYMTAB"), count * sizeof(Elf64_Sym));
  const std::uint64_t strings = dynamic.get(DT_STRSZ, "DT_STRSZ");
  for (std::uint64_t i = 0; i < count; ++i)
    if (file.read<Elf64_Sym>(table + i * sizeof(Elf64_Sym)).st_name >= strings)
      malformed("a name lies outside of its string table");
  return count;
}

void each_needed_version(const File& file, const DynamicSection& dynamic, const VisitNeeded& visit) {
  const auto table = dynamic.find(DT_VERNEED);
  std::size_t count = 0;
  for (std::uint64_t at = table.value_or(0); table;) {
    const auto library = file.read_at<Elf64_Verneed>(at);
    for (std::uint64_t version = File::sum(at, library.vn_aux);;) {
      if (++count > limits::symbol_versions) malformed("its version table has no end");
      const auto entry = file.read_at<Elf64_Vernaux>(version);
      visit({library, entry, at, version});
      if (entry.vna_next == 0) break;
      version = File::sum(version, entry.vna_next);
    }
    if (library.vn_next == 0) break;
    at = File::sum(at, library.vn_next);
  }
}

void each_defined_version(const File& file, const DynamicSection& dynamic, const VisitDefined& define) {
  const auto table = dynamic.find(DT_VERDEF);
  std::size_t count = 0;
  for (std::uint64_t at = table.value_or(0); table;) {
    if (++count > limits::symbol_versions) malformed("its version table has no end");
    const auto entry = file.read_at<Elf64_Verdef>(at);
    define(entry, file.read_at<Elf64_Verdaux>(File::sum(at, entry.vd_aux)).vda_name);
    if (entry.vd_next == 0) break;
    at = File::sum(at, entry.vd_next);
  }
}

void check_versions(const File& file, const DynamicSection& dynamic, std::uint64_t symbols) {
  std::set<std::string_view> libraries;
  for (std::uint64_t i = 0; i < dynamic.size(); ++i)
    if (const Elf64_Dyn entry = dynamic.at(i); entry.d_tag == DT_NEEDED)
      libraries.insert(name_at(file, dynamic, entry.d_un.d_val));
  std::uint64_t last = 0;
  each_needed_version(file, dynamic, [&](const NeededVersion& needed) {
    if (!libraries.contains(name_at(file, dynamic, needed.library.vn_file)))
      malformed("it asks for a version of a library that it does not need");
    check_hash_of_version(name_at(file, dynamic, needed.version.vna_name), needed.version.vna_hash);
    last = std::max<std::uint64_t>(last, needed.version.vna_other & 0x7fff);
  });
  each_defined_version(file, dynamic, [&](const Elf64_Verdef& version, std::uint64_t name) {
    check_hash_of_version(name_at(file, dynamic, name), version.vd_hash);
    last = std::max<std::uint64_t>(last, version.vd_ndx & 0x7fff);
  });
  const auto table = dynamic.find(DT_VERSYM);
  if (!table) return;
  const std::uint64_t begin = file.offset_of(*table, symbols * sizeof(Elf64_Versym));
  for (std::uint64_t i = 0; i < symbols && last > 0; ++i)
    if ((file.read<Elf64_Versym>(begin + i * sizeof(Elf64_Versym)) & 0x7fff) > last)
      malformed("a symbol has a version that is not there");
}

void check_relocations(const File& file, const DynamicSection& dynamic, std::uint64_t symbols) {
  if (const auto table = dynamic.find(DT_RELA))
    check_table(file, *table, dynamic.get(DT_RELASZ, "DT_RELASZ"), dynamic.find(DT_RELACOUNT).value_or(0), symbols);
  if (const auto table = dynamic.find(DT_JMPREL))
    check_table(file, *table, dynamic.get(DT_PLTRELSZ, "DT_PLTRELSZ"), 0, symbols);
  if (const auto table = dynamic.find(DT_RELR)) check_short_table(file, *table, dynamic.get(DT_RELRSZ, "DT_RELRSZ"));
}

}  // namespace neml2_capi::aoti::elf
