// The edit of a package's shared object: what it changes, and that no damaged file gets past it or crashes it.
//
//     test_elf [ANYTHING [PACKAGE ...]]    edits further packages, too
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "capi/loader/elf.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::bind_to_addresses;
using aoti::bind_to_provider;
using aoti::Object;

namespace {

constexpr std::string_view provider = "libn2abcdefg.so";

template <class T>
T read(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void write(std::string& bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

Elf64_Shdr section(std::string_view object, Elf64_Word type) {
  const auto header = read<Elf64_Ehdr>(object, 0);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto found = read<Elf64_Shdr>(object, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (found.sh_type == type) return found;
  }
  expect(false, "the section is there");
  return {};
}

// The dynamic symbols, by way of the section headers, which the edit does not use.
std::vector<Elf64_Sym> symbols(std::string_view object) {
  const Elf64_Shdr table = section(object, SHT_DYNSYM);
  std::vector<Elf64_Sym> found;
  for (std::size_t i = 1; i < table.sh_size / sizeof(Elf64_Sym); ++i)
    found.push_back(read<Elf64_Sym>(object, table.sh_offset + i * sizeof(Elf64_Sym)));
  return found;
}

std::string dynamic_string(std::string_view object, std::uint64_t name) {
  const auto table = section(object, SHT_DYNSYM);
  const auto header = read<Elf64_Ehdr>(object, 0);
  const auto strings = read<Elf64_Shdr>(object, header.e_shoff + table.sh_link * sizeof(Elf64_Shdr));
  return object.data() + strings.sh_offset + name;
}

std::vector<Elf64_Dyn> dynamic_entries(std::string_view object) {
  const Elf64_Shdr table = section(object, SHT_DYNAMIC);
  std::vector<Elf64_Dyn> entries;
  for (std::size_t i = 0; i < table.sh_size / sizeof(Elf64_Dyn); ++i) {
    entries.push_back(read<Elf64_Dyn>(object, table.sh_offset + i * sizeof(Elf64_Dyn)));
    if (entries.back().d_tag == DT_NULL) break;
  }
  return entries;
}

// Names that are not of libtorch, and the provider's.
bool is_beside(const std::string& name) {
  return name == "_ZSt4cerr" || name == "__cxa_thread_atexit" || name.starts_with("__cxa_guard_");
}

void a_package_is_bound_to_the_provider(const std::string& before) {
  const Object edited = bind_to_provider(before, provider);
  expect(edited.bytes.size() == before.size(), "no byte moves");

  bool symbolic = false, needs_provider = false;
  for (const Elf64_Dyn& entry : dynamic_entries(edited.bytes)) {
    symbolic |= entry.d_tag == DT_SYMBOLIC || (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_SYMBOLIC);
    if (entry.d_tag != DT_NEEDED) continue;
    const std::string library = dynamic_string(edited.bytes, entry.d_un.d_val);
    needs_provider |= library == provider;
    for (const char* replaced : {"libtorch", "libc10", "libgomp"})
      expect(!library.starts_with(replaced), library + " is not needed");
  }
  expect(symbolic, "its own definitions come first");
  expect(needs_provider, "it needs the provider");

  const auto old_symbols = symbols(before), new_symbols = symbols(edited.bytes);
  std::size_t renamed = 0, others = 0;
  for (std::size_t i = 0; i < old_symbols.size(); ++i) {
    const std::string was = dynamic_string(before, old_symbols[i].st_name);
    const std::string is = dynamic_string(edited.bytes, new_symbols[i].st_name);
    const bool provided = was.starts_with("aoti_torch_") || was.starts_with("aoti_record_") ||
                          was.starts_with("Sleef_") || aoti::is_of_openmp(was);
    const bool beside = is_beside(was);
    others += beside;
    if (old_symbols[i].st_shndx == SHN_UNDEF && (provided || beside)) {
      renamed += provided;
      expect(is == "nml2" + was.substr(4), was + " has the provider's name");
    } else {
      expect(is == was, was + " keeps its name");
    }
    expect(ELF64_ST_BIND(new_symbols[i].st_info) != STB_GNU_UNIQUE || new_symbols[i].st_shndx == SHN_UNDEF,
           was + " belongs to its package");
  }
  expect(renamed == edited.imports.size() && renamed > 10, "every import is told");
  expect(others == 5, "it prints, ends threads, and makes static variables by the provider");
  const auto versions = edited.versions.names();
  expect(std::any_of(versions.begin(), versions.end(),
                     [](const std::string& version) { return version.starts_with("GLIBC_"); }),
         "the version of the C library is told");
}

// As the linker writes it for objects that hold constants.
void no_executable_stack_is_asked_for(std::string bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto flags_at = [&](std::size_t i) {
    return header.e_phoff + i * sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, p_flags);
  };
  std::size_t found = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_GNU_STACK) continue;
    found = flags_at(i);
    bytes[found] = PF_R | PF_W | PF_X;
  }
  expect(found > 0, "the object says what its stack is");
  expect(bind_to_provider(bytes, provider).bytes[found] == (PF_R | PF_W), "the stack holds no code");
}

// Each name has an address of its own, except one.
void a_package_is_bound_to_addresses(const std::string& before) {
  const auto address_of = [](const std::string& name) -> std::uintptr_t {
    return name == "aoti_torch_get_sizes" ? 0 : 0x1000 + std::hash<std::string>()(name) % 4096;
  };
  const Object edited = bind_to_addresses(before, provider, address_of);
  expect(edited.bytes.size() == before.size(), "no byte moves");
  const auto old_symbols = symbols(before), new_symbols = symbols(edited.bytes);
  std::size_t bound = 0;
  for (std::size_t i = 0; i < old_symbols.size(); ++i) {
    const Elf64_Sym& symbol = new_symbols[i];
    const std::string name = dynamic_string(before, old_symbols[i].st_name);
    const std::string expected = is_beside(name) ? "nml2" + name.substr(4) : name;
    expect(dynamic_string(edited.bytes, symbol.st_name) == expected, name + " keeps its name");
    const bool imported = std::any_of(edited.imports.begin(), edited.imports.end(),
                                      [&](const auto& import) { return import.name == name; });
    if (imported && address_of(name) != 0) {
      ++bound;
      expect(symbol.st_shndx == SHN_ABS && ELF64_ST_BIND(symbol.st_info) == STB_LOCAL, name + " is looked up nowhere");
      expect(symbol.st_value == address_of(name), name + " has its address");
    } else {
      expect(symbol.st_shndx == old_symbols[i].st_shndx && symbol.st_value == old_symbols[i].st_value,
             name + " is as it was");
    }
  }
  expect(bound > 10, "imports are bound");
}

void what_is_not_a_package_is_refused(const std::string& object) {
  expect_error(NEML2_ERROR_ARTIFACT, "outside", [] { bind_to_provider("", provider); });
  expect_error(NEML2_ERROR_ARTIFACT, "not an ELF", [] { bind_to_provider(std::string(4096, 'x'), provider); });
  std::string other = object;
  write<Elf64_Half>(other, offsetof(Elf64_Ehdr, e_machine), EM_S390);
  expect_error(NEML2_ERROR_UNSUPPORTED, "another machine", [&] { bind_to_provider(other, provider); });
  other = object;
  replace_all(other, "libtorch_cpu.so", "libother_cpu.so");
  expect_error(NEML2_ERROR_UNSUPPORTED, "libtorch_cpu.so", [&] { bind_to_provider(other, provider); });
}

// A linker may give a name the tail of a name that changes; the edit would change both.
void names_that_share_text_are_refused(const std::string& object) {
  std::string shared = object;
  const Elf64_Shdr table = section(object, SHT_DYNSYM);
  Elf64_Word target = 0;
  for (const Elf64_Sym& symbol : symbols(object))
    if (symbol.st_shndx == SHN_UNDEF && dynamic_string(object, symbol.st_name) == "aoti_torch_get_dim")
      target = symbol.st_name;
  expect(target != 0, "the package calls aoti_torch_get_dim");
  for (std::size_t i = 1; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
    const std::size_t at = table.sh_offset + i * sizeof(Elf64_Sym);
    auto symbol = read<Elf64_Sym>(shared, at);
    if (symbol.st_shndx == SHN_UNDEF) continue;
    symbol.st_name = target + 5;  // "torch_get_dim": beyond what changes
    write(shared, at, symbol);
    bind_to_provider(shared, provider);
    symbol.st_name = target + 1;  // "oti_torch_get_dim"
    write(shared, at, symbol);
    expect_error(NEML2_ERROR_UNSUPPORTED, "shares its text", [&] { bind_to_provider(shared, provider); });
    return;
  }
}

// Either an Error or a result; a sanitizer sees what is worse.
void edit_damaged(const std::string& object) {
  try {
    bind_to_provider(object, provider);
    bind_to_addresses(object, provider, [](const std::string&) { return 4096; });
  } catch (const Error& error) {
    expect(error.status() == NEML2_ERROR_ARTIFACT || error.status() == NEML2_ERROR_UNSUPPORTED, error.what());
  }
}

void a_truncated_object_does_no_harm(const std::string& object) {
  for (std::size_t size = 0; size < 4096; size += 7) edit_damaged(object.substr(0, size));
  for (std::size_t size = 4096; size < object.size(); size += object.size() / 97) edit_damaged(object.substr(0, size));
}

void damaged_tables_do_no_harm(const std::string& object) {
  const auto header = read<Elf64_Ehdr>(object, 0);
  struct Range {
    std::size_t begin, size;
  };
  std::vector<Range> ranges = {{0, sizeof header}, {header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)}};
  ranges.push_back({header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)});
  for (const auto type : {SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_HASH, int{SHT_GNU_verneed}}) {
    const auto found = section(object, type);
    ranges.push_back({found.sh_offset, found.sh_size});
  }
  std::mt19937 random(1);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = object;
    const Range range = ranges[below(ranges.size())];
    for (std::size_t n = 1 + below(3); n > 0; --n) {
      const std::size_t at = range.begin + below(range.size);
      switch (below(3)) {
        case 0: damaged[at] = static_cast<char>(random()); break;
        case 1: write<std::uint32_t>(damaged, std::min(at & ~std::size_t{3}, object.size() - 4), ~0u); break;
        default: write<std::uint64_t>(damaged, std::min(at & ~std::size_t{7}, object.size() - 8), ~0ull - below(4096));
      }
    }
    edit_damaged(damaged);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> packages = {example("elasticity"), example("viscoplastic_jacobian")};
  for (int i = 2; i < argc; ++i) packages.emplace_back(argv[i]);
  for (const auto& package : packages) {
    Parts parts = parts_of(package);
    a_package_is_bound_to_the_provider(part(parts, ".wrapper.so"));
    a_package_is_bound_to_addresses(part(parts, ".wrapper.so"));
  }
  Parts parts = parts_of(packages.front());
  const std::string object = part(parts, ".wrapper.so");
  no_executable_stack_is_asked_for(object);
  what_is_not_a_package_is_refused(object);
  names_that_share_text_are_refused(object);
  a_truncated_object_does_no_harm(object);
  damaged_tables_do_no_harm(object);
  return 0;
}
