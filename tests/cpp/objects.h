// Shared objects to test with: a small one that is made here, and places in any other.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cpp/packages.h"

namespace neml2_capi::testing {

template <class T>
T read_from(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void write_to(std::string& bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// A shared object that needs libtorch_cpu.so, all of it in one segment. Edit the members, then take bytes().
struct SmallObject {
  std::string strings = std::string(1, '\0') + "libtorch_cpu.so" + '\0';
  std::vector<Elf64_Sym> symbols = {Elf64_Sym{}};
  std::vector<Elf64_Shdr> sections;
  std::string section_names;
  std::vector<Elf64_Dyn> entries;  // of the dynamic section, beside those that every object has
  Elf64_Phdr segment{};            // one more; of type PT_NULL, nobody reads it

  // Returns the address of a table, which is its offset in the file as well.
  template <class T>
  std::uint64_t add_table(const std::vector<T>& rows) {
    const std::uint64_t at = headers + tables_.size();
    tables_.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(T));
    tables_.resize((tables_.size() + 7) / 8 * 8);
    return at;
  }
  void add_entry(Elf64_Sxword tag, std::uint64_t value) {
    Elf64_Dyn& made = entries.emplace_back();
    made.d_tag = tag;
    made.d_un.d_val = value;
  }

  std::uint32_t add_string(const std::string& text) {
    const auto at = static_cast<std::uint32_t>(strings.size());
    strings += text + '\0';
    return at;
  }
  // A version that is needed, by this name.
  Elf64_Vernaux needed(const std::string& name) {
    Elf64_Vernaux version{};
    version.vna_name = add_string(name);
    version.vna_hash = hash_of(name);
    return version;
  }
  static std::uint32_t hash_of(const std::string& name) {
    std::uint32_t hash = 0;
    for (const char character : name) {
      hash = (hash << 4) + static_cast<unsigned char>(character);
      if (const std::uint32_t high = hash & 0xf0000000) hash = (hash ^ high >> 24) & ~high;
    }
    return hash;
  }

  void import(std::uint32_t name) {
    Elf64_Sym symbol{};
    symbol.st_name = name;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbols.push_back(symbol);
  }

  std::string bytes() const {
    std::string body = std::string(headers, '\0') + tables_;
    const auto add = [&](const void* data, std::size_t size) {
      body.resize((body.size() + 7) / 8 * 8);
      const std::size_t at = body.size();
      body.append(static_cast<const char*>(data), size);
      return at;
    };
    std::vector<std::uint32_t> hash = {1, static_cast<std::uint32_t>(symbols.size()), 0};
    hash.resize(3 + symbols.size());
    const std::size_t text = add(strings.data(), strings.size());
    const std::size_t table = add(symbols.data(), symbols.size() * sizeof(Elf64_Sym));
    const std::size_t hashes = add(hash.data(), hash.size() * sizeof(std::uint32_t));
    std::vector<Elf64_Dyn> all_entries;
    const auto entry = [&](Elf64_Sxword tag, std::uint64_t value) {
      Elf64_Dyn& made = all_entries.emplace_back();
      made.d_tag = tag;
      made.d_un.d_val = value;
    };
    entry(DT_NEEDED, strings.find("libtorch_cpu.so"));
    entry(DT_HASH, hashes);
    entry(DT_STRTAB, text);
    entry(DT_STRSZ, strings.size());
    entry(DT_SYMTAB, table);
    entry(DT_SYMENT, sizeof(Elf64_Sym));
    all_entries.insert(all_entries.end(), entries.begin(), entries.end());
    entry(DT_NULL, 0);
    entry(DT_NULL, 0);
    const std::size_t dynamic = add(all_entries.data(), all_entries.size() * sizeof(Elf64_Dyn));
    const std::size_t loaded = body.size();

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
#if defined(__aarch64__)
    header.e_machine = EM_AARCH64;
#else
    header.e_machine = EM_X86_64;
#endif
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    if (!sections.empty()) {
      std::vector<Elf64_Shdr> all = sections;
      Elf64_Shdr& names = all.emplace_back();
      names = {};
      names.sh_offset = add(section_names.data(), section_names.size());
      names.sh_size = section_names.size();
      header.e_shoff = add(all.data(), all.size() * sizeof(Elf64_Shdr));
      header.e_shentsize = sizeof(Elf64_Shdr);
      header.e_shnum = static_cast<Elf64_Half>(all.size());
      header.e_shstrndx = static_cast<Elf64_Half>(all.size() - 1);
    }
    Elf64_Phdr load{}, place{};
    load.p_type = PT_LOAD;
    load.p_flags = PF_R | PF_W;
    load.p_filesz = load.p_memsz = loaded;
    load.p_align = 4096;
    place.p_type = PT_DYNAMIC;
    place.p_flags = PF_R | PF_W;
    place.p_offset = place.p_vaddr = place.p_paddr = dynamic;
    place.p_filesz = place.p_memsz = all_entries.size() * sizeof(Elf64_Dyn);
    place.p_align = 8;
    write_to(body, 0, header);
    write_to(body, sizeof header, load);
    write_to(body, sizeof header + sizeof load, place);
    write_to(body, sizeof header + 2 * sizeof load, segment);
    return body;
  }

 private:
  static constexpr std::size_t headers = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
  std::string tables_;
};

}  // namespace neml2_capi::testing
