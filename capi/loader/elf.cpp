#include "capi/loader/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "capi/base/error.h"
#include "capi/base/limits.h"
#include "capi/loader/elf_checks.h"
#include "capi/loader/elf_file.h"
#include "capi/loader/elf_tables.h"

namespace neml2_capi::aoti {
namespace {

using elf::DynamicSection;
using elf::File;
using elf::malformed;

constexpr std::string_view torch_library = "libtorch_cpu.so";
// Libraries that some linkers keep beside it. Packages take nothing from them.
constexpr std::string_view torch_companions[] = {"libtorch.so", "libc10.so"};
// Libraries of OpenMP. The provider has what packages take from them.
constexpr std::string_view openmp_libraries[] = {"libgomp", "libomp", "libiomp"};
constexpr std::string_view openmp_prefixes[] = {"GOMP_", "omp_", "__kmpc_"};
constexpr std::string_view provided_prefixes[] = {"aoti_torch_", "aoti_record_", "Sleef_"};
constexpr std::string_view torch_prefixes[] = {"aoti_torch_", "aoti_record_", "Sleef_", "torch_"};
// Functions by which packages print, register destructors of threads and make static variables: the provider has them,
// under names whose beginning is replaced. One that shares its text with another name is left as it is.
constexpr std::string_view replaced_names[] = {"_ZSt4cerr",
                                               "_ZSt4cout",
                                               "_ZSt4clog",
                                               "fprintf",
                                               "__fprintf_chk",
                                               "vfprintf",
                                               "__vfprintf_chk",
                                               "printf",
                                               "__printf_chk",
                                               "puts",
                                               "fputs",
                                               "putchar",
                                               "fputc",
                                               "fwrite",
                                               "perror",
                                               "__cxa_thread_atexit",
                                               "__cxa_thread_atexit_impl",
                                               "__cxa_guard_acquire",
                                               "__cxa_guard_release",
                                               "__cxa_guard_abort"};
// Prefix that leaves the rest of a name alone: linkers let torch_x share the text of aoti_torch_x.
constexpr std::string_view provider_prefix = "nml2";

[[noreturn]] void cannot_edit(const std::string& what) {
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The shared object in the package cannot be bound to the built-in runtime: ", what,
                   ". Link it with another linker (GNU ld, gold, lld and mold are known to work)."));
}

template <class Prefixes>
bool starts_with_any(std::string_view name, const Prefixes& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes), [&](auto prefix) { return name.starts_with(prefix); });
}

// String table of the dynamic section. Linkers let names share text, one being the tail of another: text is replaced
// only if no other name shares it.
class Strings {
 public:
  Strings(File& file, const DynamicSection& dynamic)
      : file_(file),
        size_(dynamic.get(DT_STRSZ, "DT_STRSZ")),
        start_(file.offset_of(dynamic.get(DT_STRTAB, "DT_STRTAB"), size_)) {}

  std::string_view get(std::uint64_t name) const {
    if (name >= size_) malformed("a name lies outside of its string table");
    const std::string_view rest =
        file_.range(start_ + name, std::min<std::uint64_t>(size_ - name, limits::name_characters));
    const auto end = rest.find('\0');
    if (end == std::string_view::npos) malformed("a name is too long");
    return rest.substr(0, end);
  }

  // Every name in use must be passed: one that stays to use(), one that changes to replace(), with its new beginning.
  void use(std::uint64_t name) { kept_.push_back(name); }
  void replace(std::uint64_t name, std::string_view beginning) { replaced_.emplace(name, beginning); }

  // Tells whether none of `names`, in order, shares text with the beginning of this one.
  bool is_alone(std::uint64_t name, std::string_view beginning, const std::vector<std::uint64_t>& names) const {
    const std::string_view before = file_.range(start_, name);
    const auto zero = before.rfind('\0');
    auto other = std::lower_bound(names.begin(), names.end(), zero == std::string_view::npos ? 0 : zero + 1);
    while (other != names.end() && *other == name) ++other;
    return other == names.end() || *other >= name + beginning.size();
  }

  void apply() {
    std::sort(kept_.begin(), kept_.end());
    for (const auto& [name, beginning] : replaced_) {
      const std::string_view before = file_.range(start_, name);
      const auto zero = before.rfind('\0');
      const std::uint64_t first = zero == std::string_view::npos ? 0 : zero + 1;
      const std::uint64_t end = name + beginning.size();
      const auto kept = std::lower_bound(kept_.begin(), kept_.end(), first);
      const auto changing = replaced_.lower_bound(first);  // at most this name
      const auto other = changing->first == name ? std::next(changing) : changing;
      if ((kept != kept_.end() && *kept < end) || (other != replaced_.end() && other->first < end))
        cannot_edit(join("the name ", get(name), " shares its text with another name"));
    }
    for (const auto& [name, beginning] : replaced_) file_.write_text(start_ + name, beginning);
  }

 private:
  File& file_;
  std::uint64_t size_;
  std::uint64_t start_;
  std::vector<std::uint64_t> kept_;
  std::map<std::uint64_t, std::string_view> replaced_;
};

// Refuses functions of libtorch under names of the package's own. Those under libtorch's are bound.
void refuse_prefix(std::string_view name) {
  const auto at = name.find("aoti_torch_");
  if (at == std::string_view::npos || name.starts_with("_Z")) return;
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The package calls ", name, ": it was compiled with the prefix \"", name.substr(0, at),
                   "\" for the functions of libtorch. Compile the model again without torch's option "
                   "shim_symbol_prefix."));
}

// Edits an undefined symbol of libtorch. Returns true if its name is no longer in use.
using Bind = std::function<bool(Elf64_Sym& symbol, std::string_view name)>;

void edit_symbols(File& file, const DynamicSection& dynamic, Strings& strings, Object& object, const Bind& bind) {
  const std::uint64_t count = elf::count_symbols(file, dynamic);
  const auto version_table = dynamic.find(DT_VERSYM);
  const std::uint64_t numbers = version_table ? file.offset_of(*version_table, count * sizeof(Elf64_Half)) : 0;
  std::map<std::string_view, std::size_t> known;  // number of each import
  const std::uint64_t table = file.offset_of(dynamic.get(DT_SYMTAB, "DT_SYMTAB"), count * sizeof(Elf64_Sym));
  std::vector<std::uint64_t> names;
  for (std::uint64_t i = 1; i < count; ++i)
    names.push_back(file.read<Elf64_Sym>(table + i * sizeof(Elf64_Sym)).st_name);
  std::sort(names.begin(), names.end());
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
    const std::string_view name = strings.get(symbol.st_name);
    const std::uint64_t number = numbers + i * sizeof(Elf64_Half);
    if (std::ranges::find(replaced_names, name) != std::end(replaced_names) &&
        strings.is_alone(symbol.st_name, provider_prefix, names)) {
      strings.replace(symbol.st_name, provider_prefix);
      if (version_table) file.write<Elf64_Half>(number, VER_NDX_GLOBAL);
      continue;
    }
    if (!bind(symbol, name)) {
      refuse_prefix(name);
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
    const auto [import, is_new] = known.emplace(name, object.imports.size());
    if (is_new) object.imports.push_back({std::string(name), false});
    object.imports[import->second].required |= binding != STB_WEAK;
    if (object.imports.size() > limits::imports)
      malformed(join("it calls more than ", limits::imports, " functions of libtorch"));
    file.write(at, symbol);
    if (version_table) file.write<Elf64_Half>(number, VER_NDX_GLOBAL);  // the provider has no versions
  }
}

// Lets the provider stand for libtorch and OpenMP. `versions` are entries of libraries of OpenMP.
void edit_needed(File& file, DynamicSection& dynamic, Strings& strings, const std::vector<std::uint64_t>& versions,
                 std::string_view provider) {
  std::optional<std::uint64_t> torch;
  std::vector<std::uint64_t> companions;
  for (std::uint64_t i = 0; i < dynamic.size(); ++i) {
    const Elf64_Dyn entry = dynamic.at(i);
    const std::uint64_t name = entry.d_un.d_val;
    if (entry.d_tag == DT_SONAME || entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH) strings.use(name);
    if (entry.d_tag != DT_NEEDED) continue;
    if (strings.get(name) == torch_library) {
      torch = name;
    } else if (starts_with_any(strings.get(name), torch_companions) ||
               starts_with_any(strings.get(name), openmp_libraries)) {
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
  for (const std::uint64_t entry : versions) {
    auto library = file.read<Elf64_Verneed>(entry);
    library.vn_file = static_cast<Elf64_Word>(*torch);
    file.write(entry, library);
  }
}

// Entries of the versions that an object needs.
struct VersionEntries {
  std::vector<std::uint64_t> all;
  std::vector<std::uint64_t> openmp_libraries;
};

// Reads the versions that the object needs of each library. A version table of libtorch itself would name the library
// that was replaced.
VersionEntries read_versions(const File& file, const DynamicSection& dynamic, Strings& strings, Object& object) {
  VersionEntries entries;
  elf::each_needed_version(file, dynamic, [&](const elf::NeededVersion& needed) {
    const auto& [library, version, library_at, version_at] = needed;
    const std::string_view name = strings.get(library.vn_file);
    if (name == torch_library) cannot_edit("it asks for symbol versions of libtorch_cpu.so");
    strings.use(library.vn_file);
    strings.use(version.vna_name);
    entries.all.push_back(file.offset_of(version_at, sizeof version));
    if (starts_with_any(name, openmp_libraries))
      entries.openmp_libraries.push_back(file.offset_of(library_at, sizeof library));
    else
      object.versions.add(version.vna_other & 0x7fff, name, strings.get(version.vna_name));
  });
  // Names of versions that the object defines share the string table.
  elf::each_defined_version(file, dynamic, [&](const Elf64_Verdef&, std::uint64_t name) { strings.use(name); });
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

// Lets the object's own definitions come before the process's.
void make_symbolic(DynamicSection& dynamic) {
  if (dynamic.find(DT_SYMBOLIC)) return;
  if (const auto flags = dynamic.index_of(DT_FLAGS))
    return dynamic.set(*flags, DT_FLAGS, dynamic.at(*flags).d_un.d_val | DF_SYMBOLIC);
  if (dynamic.has_spare()) return dynamic.set(dynamic.size(), DT_SYMBOLIC, 0);
  // The dynamic loader does without hints for a faster start: the entry of one is free to take.
  for (const Elf64_Sxword hint : {DT_RELACOUNT, DT_RELCOUNT})
    if (const auto i = dynamic.index_of(hint)) return dynamic.set(*i, DT_SYMBOLIC, 0);
  cannot_edit("its dynamic section has no room for DT_SYMBOLIC");
}

// Lets a stack be no code. An object that holds constants asks for the contrary, since the linker makes it of plain bytes,
// and glibc refuses that from 2.41 on.
void forbid_executable_stack(File& file) {
  const auto header = file.read<Elf64_Ehdr>(0);
  for (std::size_t i = 0; i < file.segments().size(); ++i) {
    Elf64_Phdr segment = file.segments()[i];
    if (segment.p_type != PT_GNU_STACK) continue;
    segment.p_flags &= ~static_cast<Elf64_Word>(PF_X);
    file.write(header.e_phoff + i * sizeof segment, segment);
  }
}

// Returns a section of the file, which need not be loaded. It is empty if sections are stripped or damaged, which
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
    const std::string_view name = text.substr(candidate.sh_name, wanted.size() + 1);
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

// Refuses tables that share bytes: what is written into one of them changes the other.
Bytes check_again(Bytes bytes) {
  File file(std::move(bytes));
  const DynamicSection dynamic(file);
  elf::check_loadable(file, dynamic);
  return file.take();
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
  elf::check_loadable(file, dynamic);
  Strings strings(file, dynamic);
  const auto versions = read_versions(file, dynamic, strings, object);
  edit_symbols(file, dynamic, strings, object, make(strings));
  release_versions(file, versions.all, object.versions);
  edit_needed(file, dynamic, strings, versions.openmp_libraries, provider);
  strings.apply();
  make_symbolic(dynamic);
  forbid_executable_stack(file);
  read_producers(file.bytes(), object);
  object.bytes = check_again(file.take());
  return object;
}

}  // namespace

std::string provided_name(std::string_view name) {
  return std::string(provider_prefix).append(name.substr(provider_prefix.size()));
}

bool is_of_openmp(std::string_view name) { return starts_with_any(name, openmp_prefixes); }

Object bind_to_provider(std::string_view bytes, std::string_view provider) {
  return edit(bytes, provider, [](Strings& strings) -> Bind {
    return [&strings](const Elf64_Sym& symbol, std::string_view name) {
      if (!starts_with_any(name, provided_prefixes) && !is_of_openmp(name)) return false;
      strings.replace(symbol.st_name, provider_prefix);
      return true;
    };
  });
}

Object bind_to_addresses(std::string_view bytes, std::string_view provider, const AddressOf& address_of) {
  return edit(bytes, provider, [&](Strings& strings) -> Bind {
    return [&](Elf64_Sym& symbol, std::string_view name) {
      if (!starts_with_any(name, torch_prefixes) && !is_of_openmp(name)) return false;
      strings.use(symbol.st_name);
      if (const std::uintptr_t address = address_of(std::string(name))) {
        symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_LOCAL, STT_FUNC));
        symbol.st_shndx = SHN_ABS;
        symbol.st_value = address;
      }
      return true;
    };
  });
}

}  // namespace neml2_capi::aoti
