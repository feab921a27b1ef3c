#include "capi/loader/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <type_traits>

#include "capi/base/error.h"

namespace neml2_capi::aoti {
namespace {

constexpr std::string_view torch_library = "libtorch_cpu.so";
// Libraries that some linkers keep beside it. Packages take nothing from them.
constexpr std::string_view torch_companions[] = {"libtorch.so", "libc10.so"};
constexpr std::string_view provided_prefixes[] = {"aoti_torch_", "aoti_record_", "Sleef_"};
constexpr std::string_view torch_prefixes[] = {"aoti_torch_", "aoti_record_", "Sleef_", "torch_"};
constexpr std::string_view openmp_prefixes[] = {"GOMP_", "omp_", "__kmpc_"};
// Prefix that leaves the rest of a name alone: linkers let torch_x share the text of aoti_torch_x.
constexpr std::string_view provider_prefix = "nml2";

#if defined(__x86_64__)
constexpr Elf64_Half this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half this_machine = EM_AARCH64;
#else
#error "The built-in provider knows x86_64 and aarch64 only."
#endif

[[noreturn]] void malformed(const std::string& what) {
  throw Error(NEML2_ERROR_ARTIFACT, "",
              join("The shared object in the package is malformed: ", what, ". Compile or copy the package again."));
}

[[noreturn]] void cannot_edit(const std::string& what) {
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The shared object in the package cannot be bound to the built-in runtime: ", what,
                   ". Link it with another linker (GNU ld, gold, lld and mold are known to work)."));
}

template <class Prefixes>
bool starts_with_any(std::string_view name, const Prefixes& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes), [&](auto prefix) { return name.starts_with(prefix); });
}

// Bytes of the file, by file offset and by the address at which they are loaded.
class File {
 public:
  explicit File(std::string_view bytes) : bytes_(bytes) {
    const auto header = read<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) malformed("it is not an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN)
      malformed("it is not a 64-bit little-endian shared object");
    if (header.e_machine != this_machine)
      throw Error(NEML2_ERROR_UNSUPPORTED, "",
                  join("The package holds code for another machine (ELF machine ", header.e_machine, ", this one is ",
                       this_machine, "). Compile the model on, or for, this machine."));
    if (header.e_phentsize != sizeof(Elf64_Phdr)) malformed("its program headers have an unknown size");
    for (Elf64_Half i = 0; i < header.e_phnum; ++i) {
      const auto segment = read<Elf64_Phdr>(sum(header.e_phoff, i * sizeof(Elf64_Phdr)));
      if (segment.p_type == PT_LOAD) loaded_.push_back(segment);
      if (segment.p_type == PT_DYNAMIC) dynamic_ = segment;
    }
  }

  const Bytes& bytes() const { return bytes_; }
  Bytes take() { return std::move(bytes_); }
  const std::optional<Elf64_Phdr>& dynamic() const { return dynamic_; }

  std::string_view range(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) malformed("an offset leads outside of it");
    return std::string_view(bytes_).substr(offset, size);
  }
  template <class T>
  T read(std::uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, range(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class T>
  void write(std::uint64_t offset, const T& value) {
    write_text(offset, {reinterpret_cast<const char*>(&value), sizeof(T)});
  }
  void write_text(std::uint64_t offset, std::string_view text) {
    range(offset, text.size());
    bytes_.replace(offset, text.size(), text);
  }

  // Returns the offset in the file of the `size` bytes that are loaded at `address`.
  std::uint64_t offset_of(std::uint64_t address, std::uint64_t size) const {
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
  template <class T>
  T read_at(std::uint64_t address) const {
    return read<T>(offset_of(address, sizeof(T)));
  }

  static std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    if (a > UINT64_MAX - b) malformed("an offset overflows");
    return a + b;
  }

 private:
  Bytes bytes_;
  std::vector<Elf64_Phdr> loaded_;
  std::optional<Elf64_Phdr> dynamic_;
};

// Dynamic section, entry by entry. Entries behind the first DT_NULL are spare.
class DynamicSection {
 public:
  explicit DynamicSection(File& file) : file_(file) {
    if (!file.dynamic()) malformed("it has no dynamic section");
    start_ = file.dynamic()->p_offset;
    const std::uint64_t capacity = file.dynamic()->p_filesz / sizeof(Elf64_Dyn);
    file.range(start_, capacity * sizeof(Elf64_Dyn));
    while (used_ < capacity && at(used_).d_tag != DT_NULL) ++used_;
    if (used_ == capacity) malformed("its dynamic section has no end");
    has_spare_ = used_ + 1 < capacity && at(used_ + 1).d_tag == DT_NULL;
  }

  std::uint64_t size() const { return used_; }
  Elf64_Dyn at(std::uint64_t i) const { return file_.read<Elf64_Dyn>(offset(i)); }
  void set(std::uint64_t i, Elf64_Sxword tag, std::uint64_t value) {
    Elf64_Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    file_.write(offset(i), entry);
  }
  std::optional<std::uint64_t> index_of(Elf64_Sxword tag) const {
    for (std::uint64_t i = 0; i < used_; ++i)
      if (at(i).d_tag == tag) return i;
    return std::nullopt;
  }
  std::optional<std::uint64_t> find(Elf64_Sxword tag) const {
    const auto i = index_of(tag);
    return i ? std::optional(at(*i).d_un.d_val) : std::nullopt;
  }
  std::uint64_t get(Elf64_Sxword tag, const char* name) const {
    const auto value = find(tag);
    if (!value) malformed(join("its dynamic section has no ", name));
    return *value;
  }

  // Lets the object's own definitions come before those of the process.
  void make_symbolic() {
    if (find(DT_SYMBOLIC)) return;
    if (const auto flags = index_of(DT_FLAGS)) return set(*flags, DT_FLAGS, at(*flags).d_un.d_val | DF_SYMBOLIC);
    if (has_spare_) return set(used_, DT_SYMBOLIC, 0);
    // The dynamic loader does without hints for a faster start: the entry of one is free to take.
    for (const Elf64_Sxword hint : {DT_RELACOUNT, DT_RELCOUNT})
      if (const auto i = index_of(hint)) return set(*i, DT_SYMBOLIC, 0);
    cannot_edit("its dynamic section has no room for DT_SYMBOLIC");
  }

 private:
  std::uint64_t offset(std::uint64_t i) const { return start_ + i * sizeof(Elf64_Dyn); }

  File& file_;
  std::uint64_t start_ = 0;
  std::uint64_t used_ = 0;
  bool has_spare_ = false;
};

// String table of the dynamic section. Linkers let names share text, one being the tail of another: text is replaced
// only where no other name shares it.
class Strings {
 public:
  Strings(File& file, const DynamicSection& dynamic)
      : file_(file),
        size_(dynamic.get(DT_STRSZ, "DT_STRSZ")),
        start_(file.offset_of(dynamic.get(DT_STRTAB, "DT_STRTAB"), size_)) {}

  std::string_view get(std::uint64_t name) const {
    if (name >= size_) malformed("a name lies outside of its string table");
    const std::string_view rest = file_.range(start_ + name, size_ - name);
    const auto end = rest.find('\0');
    if (end == std::string_view::npos) malformed("a name has no end");
    return rest.substr(0, end);
  }

  // Every name in use must be told: one that stays by use(), one that changes by replace(), with its new beginning.
  void use(std::uint64_t name) { kept_.push_back(name); }
  void replace(std::uint64_t name, std::string_view beginning) { replaced_.push_back({name, beginning}); }

  void apply() {
    std::sort(kept_.begin(), kept_.end());
    std::vector<std::uint64_t> changing;
    for (const auto& [name, beginning] : replaced_) changing.push_back(name);
    std::sort(changing.begin(), changing.end());
    for (const auto& [name, beginning] : replaced_) {
      const std::string_view before = file_.range(start_, name);
      const auto zero = before.rfind('\0');
      const std::uint64_t first = zero == std::string_view::npos ? 0 : zero + 1;
      const std::uint64_t end = name + beginning.size();
      const auto within = [&](const auto& names) { return std::lower_bound(names.begin(), names.end(), first); };
      bool shared = false;
      for (auto other = within(kept_); other != kept_.end() && *other < end; ++other) shared = true;
      for (auto other = within(changing); other != changing.end() && *other < end; ++other) shared |= *other != name;
      if (shared) cannot_edit(join("the name ", get(name), " shares its text with another name"));
    }
    for (const auto& [name, beginning] : replaced_) file_.write_text(start_ + name, beginning);
  }

 private:
  struct Replacement {
    std::uint64_t name;
    std::string_view beginning;
  };
  File& file_;
  std::uint64_t size_;
  std::uint64_t start_;
  std::vector<std::uint64_t> kept_;
  std::vector<Replacement> replaced_;
};

// Returns the number of symbols. No field tells it, but the hash table, of either style, must reach them all.
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

// Refuses functions of libtorch under names of the package's own.
void refuse_prefix(const std::string& name) {
  const auto at = name.find("aoti_torch_");
  if (at == std::string::npos || at == 0 || name.starts_with("_Z")) return;
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The package calls ", name, ": it was compiled with the prefix \"", name.substr(0, at),
                   "\" for the functions of libtorch. Compile the model again without torch's option "
                   "shim_symbol_prefix."));
}

// Edits an undefined symbol of libtorch. Returns true where its name is no longer in use.
using Bind = std::function<bool(Elf64_Sym& symbol, const std::string& name)>;

void edit_symbols(File& file, const DynamicSection& dynamic, Strings& strings, Object& object, const Bind& bind) {
  const std::uint64_t count = count_symbols(file, dynamic);
  const auto version_table = dynamic.find(DT_VERSYM);
  const std::uint64_t numbers = version_table ? file.offset_of(*version_table, count * sizeof(Elf64_Half)) : 0;
  const std::uint64_t table = file.offset_of(dynamic.get(DT_SYMTAB, "DT_SYMTAB"), count * sizeof(Elf64_Sym));
  for (std::uint64_t i = 1; i < count; ++i) {
    const std::uint64_t at = table + i * sizeof(Elf64_Sym);
    auto symbol = file.read<Elf64_Sym>(at);
    const unsigned char binding = ELF64_ST_BIND(symbol.st_info);
    if (symbol.st_shndx != SHN_UNDEF) {
      strings.use(symbol.st_name);
      if (binding != STB_GNU_UNIQUE) continue;
      symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol.st_info)));
      file.write(at, symbol);
      continue;
    }
    const std::string name(strings.get(symbol.st_name));
    object.openmp |= starts_with_any(name, openmp_prefixes);
    if (!bind(symbol, name)) {
      refuse_prefix(name);
      const std::uint64_t number = numbers + i * sizeof(Elf64_Half);
      const auto beginning =
          version_table ? object.versions.replace(file.read<Elf64_Half>(number) & 0x7fff, name, binding != STB_WEAK)
                        : std::nullopt;
      if (beginning) file.write<Elf64_Half>(number, VER_NDX_GLOBAL);
      if (beginning && !beginning->empty())
        strings.replace(symbol.st_name, *beginning);
      else
        strings.use(symbol.st_name);
      continue;
    }
    object.imports.push_back({name, binding != STB_WEAK});
    file.write(at, symbol);
  }
}

void edit_needed(DynamicSection& dynamic, Strings& strings, std::string_view provider) {
  std::optional<std::uint64_t> torch;
  std::vector<std::uint64_t> companions;
  for (std::uint64_t i = 0; i < dynamic.size(); ++i) {
    const Elf64_Dyn entry = dynamic.at(i);
    const std::uint64_t name = entry.d_un.d_val;
    if (entry.d_tag == DT_SONAME || entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH) strings.use(name);
    if (entry.d_tag != DT_NEEDED) continue;
    if (strings.get(name) == torch_library) {
      torch = name;
    } else if (starts_with_any(strings.get(name), torch_companions)) {
      companions.push_back(i);
    } else {
      strings.use(name);
    }
  }
  if (!torch)
    throw Error(NEML2_ERROR_UNSUPPORTED, "",
                join("The package does not need ", torch_library,
                     ", as packages do that AOTInductor compiles for the CPU. Compile the model again."));
  strings.replace(*torch, provider);
  for (const std::uint64_t i : companions) dynamic.set(i, DT_NEEDED, *torch);
}

// Reads the versions that the object needs of each library. A version table of libtorch itself would name the library
// that was replaced. Returns where their entries stand.
std::vector<std::uint64_t> read_versions(const File& file, const DynamicSection& dynamic, Strings& strings,
                                         Object& object) {
  std::vector<std::uint64_t> entries;
  const auto table = dynamic.find(DT_VERNEED);
  if (!table) return entries;
  constexpr std::size_t sensible = 4096;
  std::uint64_t library = *table;
  for (std::uint64_t i = dynamic.get(DT_VERNEEDNUM, "DT_VERNEEDNUM"); i > 0; --i) {
    const auto need = file.read_at<Elf64_Verneed>(library);
    if (strings.get(need.vn_file) == torch_library) cannot_edit("it asks for symbol versions of libtorch_cpu.so");
    strings.use(need.vn_file);
    std::uint64_t version = File::sum(library, need.vn_aux);
    for (Elf64_Half k = 0; k < need.vn_cnt; ++k) {
      const auto aux = file.read_at<Elf64_Vernaux>(version);
      strings.use(aux.vna_name);
      object.versions.add(aux.vna_other & 0x7fff, strings.get(need.vn_file), strings.get(aux.vna_name));
      entries.push_back(file.offset_of(version, sizeof aux));
      if (entries.size() > sensible) malformed("its version table has no end");
      if (aux.vna_next == 0) break;
      version = File::sum(version, aux.vna_next);
    }
    if (need.vn_next == 0) break;
    library = File::sum(library, need.vn_next);
  }
  return entries;
}

// Lets the dynamic loader pass over versions that no symbol asks for any longer.
void release_versions(File& file, const std::vector<std::uint64_t>& entries, const Versions& versions) {
  for (const std::uint64_t entry : entries) {
    auto version = file.read<Elf64_Vernaux>(entry);
    if (!versions.is_unused(version.vna_other & 0x7fff)) continue;
    version.vna_flags |= VER_FLG_WEAK;
    file.write(entry, version);
  }
}

// Marks the names of versions that the object defines, which share the string table, as used.
void use_defined_versions(const File& file, const DynamicSection& dynamic, Strings& strings) {
  const auto table = dynamic.find(DT_VERDEF);
  if (!table) return;
  std::uint64_t definition = *table;
  for (std::uint64_t i = dynamic.get(DT_VERDEFNUM, "DT_VERDEFNUM"); i > 0; --i) {
    const auto entry = file.read_at<Elf64_Verdef>(definition);
    strings.use(file.read_at<Elf64_Verdaux>(File::sum(definition, entry.vd_aux)).vda_name);
    if (entry.vd_next == 0) break;
    definition = File::sum(definition, entry.vd_next);
  }
}

// Returns a section of the file, which need not be loaded. It is empty where sections are stripped or damaged, which
// does no harm.
std::string_view find_section(std::string_view bytes, std::string_view wanted) {
  const auto within = [&](std::uint64_t offset, std::uint64_t size) {
    return offset <= bytes.size() && size <= bytes.size() - offset;
  };
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto section = [&](std::uint64_t i) {
    Elf64_Shdr found{};
    if (within(header.e_shoff, (i + 1) * sizeof found))
      std::memcpy(&found, bytes.data() + header.e_shoff + i * sizeof found, sizeof found);
    return found;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || !within(names.sh_offset, names.sh_size)) return {};
  const std::string_view text = bytes.substr(names.sh_offset, names.sh_size);
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr candidate = section(i);
    if (candidate.sh_type != SHT_PROGBITS || candidate.sh_flags & SHF_COMPRESSED) continue;
    if (!within(candidate.sh_offset, candidate.sh_size) || candidate.sh_name >= text.size()) continue;
    const std::string_view name = text.substr(candidate.sh_name);
    if (name.substr(0, name.find('\0')) == wanted) return bytes.substr(candidate.sh_offset, candidate.sh_size);
  }
  return {};
}

// Reads the producer strings of the debug information: "GNU C++20 12.2.0 -march=x86-64-v3 -mavx2 ...".
void read_producers(std::string_view bytes, Object& object) {
  constexpr std::string_view mark = " -march=";
  for (const std::string_view name : {".debug_str", ".debug_line_str"}) {
    const std::string_view text = find_section(bytes, name);
    for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at)) {
      const std::size_t zero = text.rfind('\0', at);
      const std::size_t begin = zero == std::string_view::npos ? 0 : zero + 1;
      const std::size_t end = std::min(text.find('\0', at), text.size());
      object.producers.emplace_back(text.substr(begin, end - begin));
      at = end;
    }
  }
}

// Edits an object, for both ways of binding. `make`, given the strings, returns the edit of undefined symbols.
template <class Make>
Object edit(std::string_view bytes, std::string_view provider, const Make& make) {
  if (provider.size() != torch_library.size())
    throw Error(
        NEML2_ERROR_INTERNAL, "",
        join("The name of the provider must have ", torch_library.size(), " characters. Build the library again."));
  Object object;
  File file(bytes);
  DynamicSection dynamic(file);
  Strings strings(file, dynamic);
  const auto versions = read_versions(file, dynamic, strings, object);
  edit_symbols(file, dynamic, strings, object, make(strings));
  release_versions(file, versions, object.versions);
  edit_needed(dynamic, strings, provider);
  use_defined_versions(file, dynamic, strings);
  strings.apply();
  dynamic.make_symbolic();
  read_producers(file.bytes(), object);
  object.bytes = file.take();
  return object;
}

}  // namespace

std::string provided_name(std::string_view name) {
  return std::string(provider_prefix).append(name.substr(provider_prefix.size()));
}

Object bind_to_provider(std::string_view bytes, std::string_view provider) {
  return edit(bytes, provider, [](Strings& strings) -> Bind {
    return [&strings](const Elf64_Sym& symbol, const std::string& name) {
      if (!starts_with_any(name, provided_prefixes)) return false;
      strings.replace(symbol.st_name, provider_prefix);
      return true;
    };
  });
}

Object bind_to_addresses(std::string_view bytes, std::string_view provider, const AddressOf& address_of) {
  return edit(bytes, provider, [&](Strings& strings) -> Bind {
    return [&](Elf64_Sym& symbol, const std::string& name) {
      if (!starts_with_any(name, torch_prefixes)) return false;
      strings.use(symbol.st_name);
      if (const std::uintptr_t address = address_of(name)) {
        symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_LOCAL, STT_FUNC));
        symbol.st_shndx = SHN_ABS;
        symbol.st_value = address;
      }
      return true;
    };
  });
}

}  // namespace neml2_capi::aoti
