// Tables of a shared object that few packages have: versions, relocations of each kind, and texts in odd places.
#include <utility>

#include "capi/base/limits.h"
#include "capi/loader/elf.h"
#include "tests/cpp/objects.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::bind_to_provider;

namespace {

constexpr std::string_view provider = "libn2abcdefg.so";
constexpr std::uint64_t far_away = std::uint64_t{1} << 40;

#if defined(__x86_64__)
constexpr std::uint64_t relative = R_X86_64_RELATIVE, absolute = R_X86_64_64, copied = R_X86_64_COPY,
                        descriptor = R_X86_64_TLSDESC;
#else
constexpr std::uint64_t relative = R_AARCH64_RELATIVE, absolute = R_AARCH64_ABS64, copied = R_AARCH64_COPY,
                        descriptor = R_AARCH64_TLSDESC;
#endif

void accepted(const std::string& object) { bind_to_provider(object, provider); }

void refused(const std::string& reason, const std::string& object, std::int32_t status = NEML2_ERROR_ARTIFACT) {
  expect_error(status, reason, [&] { bind_to_provider(object, provider); });
}

// Returns the end of the segment in memory.
std::uint64_t end_of(const std::string& object) { return read_from<Elf64_Phdr>(object, sizeof(Elf64_Ehdr)).p_memsz; }

// --------------------------------------------------------------------------------------------------------------------
// Versions
// --------------------------------------------------------------------------------------------------------------------

// An object that asks for `count` versions of a library.
SmallObject with_needed_versions(std::uint32_t library, std::size_t count, SmallObject object) {
  Elf64_Verneed needed{};
  needed.vn_file = library;
  needed.vn_aux = sizeof needed;
  object.add_entry(DT_VERNEED, object.add_table<Elf64_Verneed>({needed}));
  Elf64_Vernaux version = object.needed("VERSION_1");
  version.vna_next = sizeof version;
  std::vector<Elf64_Vernaux> versions(count, version);
  versions.back().vna_next = 0;
  object.add_table(versions);
  return object;
}

// Lets an object need a version of a library, which has the number 2 among its symbols. Returns where the entries stand.
std::pair<std::uint64_t, std::uint64_t> add_version(SmallObject& object, std::uint32_t library, Elf64_Vernaux version) {
  Elf64_Verneed needed{};
  needed.vn_file = library;
  needed.vn_aux = sizeof needed;
  version.vna_other = 2;
  const std::uint64_t at = object.add_table<Elf64_Verneed>({needed});
  object.add_entry(DT_VERNEED, at);
  return {at, object.add_table<Elf64_Vernaux>({version})};
}

void needed_versions_are_counted() {
  SmallObject object;
  const std::uint32_t library = object.add_string("libother.so");
  refused("a library that it does not need", with_needed_versions(library, 1, object).bytes());
  object.add_entry(DT_NEEDED, library);
  accepted(with_needed_versions(library, limits::symbol_versions, object).bytes());
  refused("its version table has no end", with_needed_versions(library, limits::symbol_versions + 1, object).bytes());
}

// The dynamic loader takes a version with the hash 0 for the one of no version, and reads a name that is not there.
void versions_have_the_hash_of_their_name() {
  for (const auto& [name, told] : {std::pair("", 0u), {"VERSION_1", 0u}, {"VERSION_1", 1u}}) {
    SmallObject object;
    const std::uint32_t library = object.add_string("libm.so.6");
    object.add_entry(DT_NEEDED, library);
    object.import(object.add_string("sin"));
    object.add_entry(DT_VERSYM, object.add_table<Elf64_Versym>({VER_NDX_LOCAL, 2}));
    Elf64_Vernaux version = object.needed(name);
    version.vna_hash = told;
    add_version(object, library, version);
    refused("another hash than its name", object.bytes());
  }
}

// The dynamic loader passes over versions of the system that no symbol asks for any longer.
void versions_that_are_not_in_use_are_weak() {
#if defined(__GLIBC__)
  // roundeven is of glibc 2.25, and sin of every one.
  const auto flags_of = [](const std::string& text, const std::vector<std::string>& functions) {
    SmallObject object;
    const std::uint32_t library = object.add_string("libm.so.6");
    object.add_entry(DT_NEEDED, library);
    std::vector<Elf64_Versym> numbers = {VER_NDX_LOCAL};
    for (const std::string& function : functions) {
      object.import(object.add_string(function));
      numbers.push_back(2);
    }
    object.add_entry(DT_VERSYM, object.add_table(numbers));
    const std::uint64_t at = add_version(object, library, object.needed(text)).second;
    return read_from<Elf64_Vernaux>(bind_to_provider(object.bytes(), provider).bytes, at).vna_flags;
  };
  expect(flags_of("GLIBC_2.25", {"roundeven"}) == 0, "this one is there");
  expect(flags_of("GLIBC_2.25", {"sin"}) == VER_FLG_WEAK, "another version takes its place");
  expect(flags_of("GLIBC_2.25", {"sin", "roundeven"}) == 0, "one of two functions");
  expect(flags_of("GLIBC_2.999", {"sin", "roundeven"}) == VER_FLG_WEAK, "neither is there");
#endif
}

// No library of OpenMP is opened, and the dynamic loader asks for no version of one.
void the_provider_stands_for_openmp() {
  for (const auto& [name, function] : {std::pair("libgomp.so.1", "GOMP_parallel"), {"libomp.so.5", "__kmpc_barrier"}}) {
    SmallObject object;
    const std::uint32_t library = object.add_string(name);
    object.add_entry(DT_NEEDED, library);
    object.import(object.add_string(function));
    const std::uint64_t numbers = object.add_table<Elf64_Versym>({VER_NDX_LOCAL, 2});
    object.add_entry(DT_VERSYM, numbers);
    const std::uint64_t at = add_version(object, library, object.needed("VERSION_1")).first;
    const aoti::Object edited = bind_to_provider(object.bytes(), provider);
    expect(edited.imports.size() == 1 && edited.imports[0].name == function, "the provider is asked for it");
    expect(edited.bytes.find(function) == edited.bytes.npos, "by its own name");
    expect(read_from<Elf64_Verneed>(edited.bytes, at).vn_file == object.strings.find("libtorch_cpu.so"),
           "the provider");
    expect(read_from<Elf64_Versym>(edited.bytes, numbers + sizeof(Elf64_Versym)) == VER_NDX_GLOBAL, "of any version");
    edited.versions.check();
  }
}

void the_provider_has_a_name_of_the_same_length() {
  const std::string object = SmallObject().bytes();
  expect_error(NEML2_ERROR_INTERNAL, "must have 15 characters", [&] { bind_to_provider(object, "libshort.so"); });
}

// The library of another name would be asked for them.
void versions_of_libtorch_are_refused() {
  const SmallObject object;
  const auto library = static_cast<std::uint32_t>(object.strings.find("libtorch_cpu.so"));
  refused("it asks for symbol versions of libtorch_cpu.so", with_needed_versions(library, 1, object).bytes(),
          NEML2_ERROR_UNSUPPORTED);
}

void defined_versions_are_counted() {
  for (const std::size_t count : {limits::symbol_versions, limits::symbol_versions + 1}) {
    SmallObject object;
    Elf64_Verdaux name{};
    name.vda_name = object.add_string("VERSION_1");
    Elf64_Verdef version{};
    version.vd_hash = SmallObject::hash_of("VERSION_1");
    version.vd_next = sizeof version;
    std::vector<Elf64_Verdef> versions(count, version);
    versions.back().vd_next = 0;
    const std::size_t size = (count * sizeof version + 7) / 8 * 8;
    for (std::size_t i = 0; i < count; ++i) versions[i].vd_aux = static_cast<Elf64_Word>(size - i * sizeof version);
    object.add_entry(DT_VERDEF, object.add_table(versions));
    object.add_table<Elf64_Verdaux>({name});
    if (count == limits::symbol_versions)
      accepted(object.bytes());
    else
      refused("its version table has no end", object.bytes());
  }
}

// --------------------------------------------------------------------------------------------------------------------
// Relocations
// --------------------------------------------------------------------------------------------------------------------

struct Relocated {
  std::string bytes;
  std::uint64_t table;
};

Relocated with_relocations(const std::vector<Elf64_Rela>& rows, SmallObject object = {}) {
  const std::uint64_t table = object.add_table(rows);
  object.add_entry(DT_RELA, table);
  object.add_entry(DT_RELASZ, rows.size() * sizeof(Elf64_Rela));
  object.add_entry(DT_RELAENT, sizeof(Elf64_Rela));
  return {object.bytes(), table};
}

Elf64_Rela relocation(std::uint64_t type, std::uint64_t place = sizeof(Elf64_Ehdr)) {
  Elf64_Rela row{};
  row.r_offset = place;
  row.r_info = type;
  return row;
}

void a_relocation_fits_into_its_segment() {
  accepted(with_relocations({relocation(relative), relocation(absolute), relocation(0, far_away)}).bytes);
  refused("it copies a variable", with_relocations({relocation(copied)}).bytes);
  // A descriptor has two words.
  const std::pair<std::uint64_t, std::uint64_t> sizes[] = {{absolute, 8}, {descriptor, 16}};
  for (const auto& [type, size] : sizes) {
    auto [bytes, table] = with_relocations({relocation(type)});
    write_to(bytes, table, end_of(bytes) - size);
    accepted(bytes);
    write_to(bytes, table, end_of(bytes) - size + 1);
    refused("outside of its writable segments", bytes);
  }
}

void a_relocation_does_not_fit_into_a_small_segment() {
  SmallObject object;
  object.segment.p_type = PT_LOAD;
  object.segment.p_flags = PF_R | PF_W;
  object.segment.p_vaddr = 1 << 20;
  object.segment.p_memsz = 4;
  refused("outside of its writable segments", with_relocations({relocation(absolute, 1 << 20)}, object).bytes);
  object.segment.p_memsz = 8;
  accepted(with_relocations({relocation(absolute, 1 << 20)}, object).bytes);
  object.segment.p_flags = PF_R;
  refused("outside of its writable segments", with_relocations({relocation(absolute, 1 << 20)}, object).bytes);
}

void relative_relocations_come_first() {
  SmallObject object;
  object.add_entry(DT_RELACOUNT, 2);
  accepted(with_relocations({relocation(relative), relocation(relative), relocation(absolute)}, object).bytes);
  refused("relative relocations do not come first",
          with_relocations({relocation(relative), relocation(absolute)}, object).bytes);
}

// Addresses, each of which bit fields may follow.
void short_relocations_lead_into_segments() {
  SmallObject object;
  const std::uint64_t table = object.add_table(std::vector<std::uint64_t>(3));
  object.add_entry(DT_RELR, table);
  object.add_entry(DT_RELRSZ, 3 * sizeof(Elf64_Relr));
  object.add_entry(DT_RELRENT, sizeof(Elf64_Relr));
  std::string bytes = object.bytes();
  const auto set = [&](std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    std::uint64_t at = table;
    for (const std::uint64_t row : {first, second, third}) write_to(bytes, std::exchange(at, at + 8), row);
  };
  const std::uint64_t end = end_of(bytes) / 8 * 8;
  set(table, 0b1101, 1);
  accepted(bytes);
  set(table, far_away, 1);
  refused("outside of its writable segments", bytes);
  set(end - 16, 0b11, 1);
  accepted(bytes);
  set(end - 16, 0b101, 1);
  refused("outside of its writable segments", bytes);
  set(end - 16, 0b1, 0b11);  // 63 words on
  refused("outside of its writable segments", bytes);
}

// --------------------------------------------------------------------------------------------------------------------
// Segments
// --------------------------------------------------------------------------------------------------------------------

void thread_local_storage_has_a_size() {
  SmallObject object;
  object.segment.p_type = PT_TLS;
  for (const std::uint64_t align : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{64}, limits::thread_bytes}) {
    object.segment.p_align = align;
    accepted(object.bytes());
  }
  for (const std::uint64_t align : {std::uint64_t{48}, 2 * limits::thread_bytes}) {
    object.segment.p_align = align;
    refused("thread-local storage has an impossible size", object.bytes());
  }
  object.segment.p_align = 8;
  object.segment.p_memsz = limits::thread_bytes + 1;
  refused("thread-local storage has an impossible size", object.bytes());
}

void notes_lie_in_the_object() {
  for (const auto type : {Elf64_Word{PT_NOTE}, Elf64_Word{PT_GNU_PROPERTY}, Elf64_Word{PT_GNU_EH_FRAME}}) {
    SmallObject object;
    object.segment.p_type = type;
    object.segment.p_vaddr = far_away;
    accepted(object.bytes());  // where there is nothing to read
    object.segment.p_memsz = 16;
    refused("an address leads outside of its segments", object.bytes());
  }
}

void a_segment_may_do_without_alignment() {
  SmallObject object;
  object.segment.p_type = PT_LOAD;
  object.segment.p_vaddr = (1 << 20) + 7;
  for (const std::uint64_t align : {0u, 1u}) {
    object.segment.p_align = align;
    accepted(object.bytes());
  }
}

// --------------------------------------------------------------------------------------------------------------------
// Texts
// --------------------------------------------------------------------------------------------------------------------

void names_of_libraries_are_bounded() {
  SmallObject object;
  object.add_entry(DT_NEEDED, object.add_string(std::string(limits::name_characters, 'x')));
  refused("the name of a library is too long", object.bytes());
}

// Text that changes is nobody else's.
void names_of_the_object_keep_their_text() {
  for (const Elf64_Sxword tag : {DT_SONAME, DT_RPATH, DT_RUNPATH}) {
    SmallObject object;
    const std::uint32_t name = object.add_string("aoti_torch_clone");
    object.import(name);
    object.add_entry(tag, name + 5);
    accepted(object.bytes());
    object.entries.back().d_un.d_val = name + 1;
    refused("shares its text with another name", object.bytes(), NEML2_ERROR_UNSUPPORTED);
  }
}

void the_first_name_may_change() {
  SmallObject object;
  object.strings = std::string("libtorch_cpu.so") + '\0';
  expect(bind_to_provider(object.bytes(), provider).bytes.find(provider) != std::string::npos, "it is the provider's");
}

void mangled_names_are_the_package_s_own() {
  SmallObject object;
  object.import(object.add_string("_ZN3abc18aoti_torch_scratchEv"));
  expect(bind_to_provider(object.bytes(), provider).imports.empty(), "no function of libtorch");
  object.import(object.add_string("mine_aoti_torch_clone"));
  refused("it was compiled with the prefix \"mine_\"", object.bytes(), NEML2_ERROR_UNSUPPORTED);
}

void its_own_definitions_come_first() {
  SmallObject object;
  object.add_entry(DT_FLAGS, DF_BIND_NOW);
  const auto edited = bind_to_provider(object.bytes(), provider).bytes;
  Elf64_Dyn flags{};
  flags.d_tag = DT_FLAGS;
  flags.d_un.d_val = DF_BIND_NOW | DF_SYMBOLIC;
  expect(edited.find({reinterpret_cast<const char*>(&flags), sizeof flags}) != std::string::npos, "a flag says so");
}

void command_lines_of_compilers_are_found() {
  SmallObject object;
  const std::string first = "GNU C++20 -march=x86-64-v3 -O3", last = "GNU C17 -march=native";
  const std::string text = first + '\0' + "a.cpp" + '\0' + last;
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = object.add_table(std::vector<char>(text.begin(), text.end()));
  section.sh_size = text.size();
  section.sh_name = 1;
  object.section_names = std::string(1, '\0') + ".debug_str" + '\0';
  object.sections.push_back(section);
  expect(bind_to_provider(object.bytes(), provider).producers == std::vector<std::string>({first, last}),
         "from one end of the section to the other");
}

}  // namespace

int main() {
  needed_versions_are_counted();
  versions_have_the_hash_of_their_name();
  versions_of_libtorch_are_refused();
  versions_that_are_not_in_use_are_weak();
  the_provider_stands_for_openmp();
  the_provider_has_a_name_of_the_same_length();
  defined_versions_are_counted();
  a_relocation_fits_into_its_segment();
  a_relocation_does_not_fit_into_a_small_segment();
  relative_relocations_come_first();
  short_relocations_lead_into_segments();
  thread_local_storage_has_a_size();
  notes_lie_in_the_object();
  a_segment_may_do_without_alignment();
  names_of_libraries_are_bounded();
  names_of_the_object_keep_their_text();
  the_first_name_may_change();
  mangled_names_are_the_package_s_own();
  its_own_definitions_come_first();
  command_lines_of_compilers_are_found();
  return 0;
}
