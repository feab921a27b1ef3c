// Shared objects that were written to keep a reader busy, or to lead the dynamic loader astray.
#include <sys/resource.h>

#include "capi/loader/elf.h"
#include "tests/cpp/objects.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::bind_to_provider;

namespace {

constexpr std::string_view provider = "libn2abcdefg.so";

void a_name_may_be_imported_often() {
  SmallObject object;
  const std::uint32_t name = object.add_string("aoti_torch_clone");
  for (int i = 0; i < 200000; ++i) object.import(name);
  const auto bound = bind_to_provider(object.bytes(), provider);
  expect(bound.imports.size() == 1 && bound.imports[0].name == "aoti_torch_clone", "one function is told");
  expect(bound.bytes.find("nml2_torch_clone") != std::string::npos, "it is the provider's");
}

void long_names_are_refused() {
  SmallObject object;
  const std::uint32_t name = object.add_string("aoti_torch_" + std::string(1 << 20, 'x'));
  for (int i = 0; i < 4000; ++i) object.import(name);
  expect_error(NEML2_ERROR_ARTIFACT, "long", [&] { bind_to_provider(object.bytes(), provider); });
  // Each the end of the one before.
  object = {};
  std::string names;
  for (int i = 0; i < 20000; ++i) names += "aoti_torch_";
  const std::uint32_t begin = object.add_string(names + "x");
  for (std::uint32_t i = 0; i < 20000; ++i) object.import(begin + 11 * i);
  expect_error(NEML2_ERROR_ARTIFACT, "long", [&] { bind_to_provider(object.bytes(), provider); });
}

void imports_are_counted() {
  SmallObject object;
  for (int i = 0; i < 20000; ++i) object.import(object.add_string(join("aoti_torch_", i)));
  expect_error(NEML2_ERROR_ARTIFACT, "functions", [&] { bind_to_provider(object.bytes(), provider); });
}

void names_of_sections_are_compared_and_not_searched() {
  SmallObject object;
  object.section_names = std::string(4 << 20, 'n');
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  for (int i = 0; i < 65000; ++i) {
    section.sh_name = static_cast<Elf64_Word>(i);
    object.sections.push_back(section);
  }
  expect(bind_to_provider(object.bytes(), provider).producers.empty(), "no section has this name");
}

// --------------------------------------------------------------------------------------------------------------------
// What the dynamic loader takes as it is
// --------------------------------------------------------------------------------------------------------------------

std::string elasticity() {
  Parts parts = parts_of(example("elasticity"));
  return part(parts, ".wrapper.so");
}

void refused(const std::string& object, const std::string& what) {
  try {
    bind_to_provider(object, provider);
  } catch (const Error& error) {
    expect(error.status() == NEML2_ERROR_ARTIFACT, join(what, ": ", error.what()));
    return;
  }
  expect(false, "refused: " + what);
}

using Segment = std::function<void(Elf64_Phdr&)>;

// Edits the first segment of a kind, or the number `skip` + 1 of them.
std::string with_segment(std::string object, Elf64_Word type, const Segment& edit, int skip = 0) {
  const auto header = read_from<Elf64_Ehdr>(object, 0);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    auto segment = read_from<Elf64_Phdr>(object, at);
    if (segment.p_type != type || skip-- > 0) continue;
    edit(segment);
    write_to(object, at, segment);
    return object;
  }
  expect(false, join("a segment of the type ", type));
  return object;
}

std::size_t dynamic_at(const std::string& object) {
  std::size_t at = 0;
  with_segment(object, PT_DYNAMIC, [&](Elf64_Phdr& segment) { at = segment.p_offset; });
  return at;
}

// Returns the place of a dynamic entry, or 0.
std::size_t entry_at(const std::string& object, Elf64_Sxword tag) {
  for (std::size_t at = dynamic_at(object);; at += sizeof(Elf64_Dyn)) {
    const auto entry = read_from<Elf64_Dyn>(object, at);
    if (entry.d_tag == tag) return at;
    if (entry.d_tag == DT_NULL) return 0;
  }
}

std::uint64_t entry_of(const std::string& object, Elf64_Sxword tag) {
  return read_from<Elf64_Dyn>(object, entry_at(object, tag)).d_un.d_val;
}

void segments_lie_in_the_file_in_their_order(const std::string& object) {
  const auto bad = [&](const char* what, Elf64_Word type, const Segment& edit, int skip = 0) {
    refused(with_segment(object, type, edit, skip), what);
  };
  bad("beyond the file", PT_LOAD, [&](auto& s) { s.p_filesz = s.p_memsz = object.size() + 1; });
  bad("more of the file than of memory", PT_LOAD, [](auto& s) { s.p_memsz = s.p_filesz - 1; });
  bad(
      "out of order", PT_LOAD, [](auto& s) { s.p_vaddr = 0; }, 1);
  bad(
      "no end of memory", PT_LOAD, [](auto& s) { s.p_memsz = ~0ull - s.p_vaddr; }, 1);
  bad(
      "more memory than there is", PT_LOAD, [](auto& s) { s.p_memsz = 1ull << 46; }, 1);
  bad("a strange alignment", PT_LOAD, [](auto& s) { s.p_align = 4095; });
  bad(
      "an offset off the page", PT_LOAD, [](auto& s) { s.p_offset += 1, s.p_filesz -= 1, s.p_memsz -= 1; }, 1);
  bad("another address", PT_DYNAMIC, [](auto& s) { s.p_vaddr += 16; });
  bad("an address outside", PT_DYNAMIC, [](auto& s) { s.p_vaddr = 1ull << 40; });
  bad("pages to protect outside", PT_GNU_RELRO, [](auto& s) { s.p_memsz = 1ull << 30; });
  bad("unwinding tables outside", PT_GNU_EH_FRAME, [](auto& s) { s.p_vaddr = 1ull << 40; });
  bad("notes as thread-local storage outside", PT_NOTE, [](auto& s) { s.p_type = PT_TLS, s.p_vaddr = 1ull << 40; });
  std::string many = object;
  auto header = read_from<Elf64_Ehdr>(many, 0);
  header.e_phnum = 60000;
  write_to(many, 0, header);
  refused(many, "60,000 segments");
}

void entries_lead_into_segments(const std::string& object) {
  for (const Elf64_Sxword tag :
       {DT_HASH, DT_GNU_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_JMPREL, DT_INIT, DT_FINI, DT_INIT_ARRAY, DT_FINI_ARRAY,
        DT_PLTGOT, DT_VERSYM, DT_VERNEED, DT_STRSZ, DT_RELASZ, DT_PLTRELSZ, DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ}) {
    const std::size_t at = entry_at(object, tag);
    if (at == 0) continue;
    for (const std::uint64_t value : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
      std::string bad = object;
      write_to(bad, at + 8, value);
      refused(bad, join("the entry ", tag, " is ", value));
    }
  }
  for (const Elf64_Sxword tag : {DT_SYMENT, DT_RELAENT}) {
    std::string bad = object;
    write_to(bad, entry_at(object, tag) + 8, std::uint64_t{7});
    refused(bad, join("the size ", tag));
  }
  // The loader takes the last one.
  std::string twice = object;
  write_to(twice, entry_at(object, DT_RELACOUNT), Elf64_Dyn{DT_STRTAB, {1 << 20}});
  refused(twice, "two tables of strings");
}

void relocations_lead_into_segments(const std::string& object) {
  std::size_t offset = 0;
  const std::uint64_t address = entry_of(object, DT_RELA), size = entry_of(object, DT_RELASZ);
  with_segment(object, PT_LOAD, [&](auto& s) { offset = address - s.p_vaddr + s.p_offset; });
  const std::size_t last = offset + size - sizeof(Elf64_Rela);
  for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    std::string bad = object;
    write_to(bad, last, place);
    refused(bad, join("a relocation at ", place));
  }
  std::string bad = object;
  write_to(bad, last + 8, (std::uint64_t{1} << 52) | 1);
  refused(bad, "a relocation by a symbol that is not there");
}

void tables_of_names_are_sound(const std::string& object) {
  const std::uint64_t table = entry_of(object, DT_GNU_HASH);  // in the first segment: an offset, too
  std::string bad = object;
  write_to(bad, table + 8, std::uint32_t{3});
  refused(bad, "three words in a filter");
  bad = object;
  write_to(bad, table + 8, std::uint32_t{0});
  refused(bad, "no words in a filter");
  bad = object;
  write_to(bad, table + 16 + 8 * read_from<std::uint32_t>(object, table + 8), std::uint32_t{1});
  refused(bad, "a bucket of undefined names");
  bad = object;
  write_to(bad, entry_of(object, DT_VERSYM) + 2, std::uint16_t{0x7ffe});
  refused(bad, "a version that is not there");
  bad = object;
  bad[entry_of(object, DT_STRTAB) + entry_of(object, DT_STRSZ) - 1] = 'x';
  refused(bad, "names without an end");
  // A chain that is a circle.
  SmallObject small;
  for (int i = 0; i < 3; ++i) small.import(small.add_string(join("name", i)));
  std::string circle = small.bytes();
  const std::uint64_t hash = entry_of(circle, DT_HASH);
  write_to(circle, hash + 8, std::uint32_t{1});
  write_to(circle, hash + 12 + 4, std::uint32_t{2});
  write_to(circle, hash + 12 + 8, std::uint32_t{1});
  refused(circle, "a circle of names");
  // Two buckets of one chain.
  std::string shared = small.bytes();
  std::uint64_t at = 0;
  for (const std::uint32_t word : {2u, 3u, 1u, 1u, 0u, 0u, 0u}) write_to(shared, hash + 4 * at++, word);
  expect(bind_to_provider(shared, provider).imports.empty(), "they may share it");
}

// The address of a function that is written into a symbol would be the value of an entry.
void tables_that_share_bytes_are_refused() {
  for (const Elf64_Sxword tag : {DT_NEEDED, DT_SONAME, DT_RUNPATH}) {
    SmallObject object;
    const std::uint32_t name = object.add_string("aoti_torch_clone");
    object.import(name);
    object.add_entry(tag, name);
    std::string bytes = object.bytes();
    const std::size_t entry = entry_at(bytes, DT_SYMENT) + sizeof(Elf64_Dyn);  // the next one
    // The symbol has the name of the entry.
    write_to(bytes, entry_at(bytes, DT_SYMTAB) + 8, entry + 8 - sizeof(Elf64_Sym));
    expect_error(NEML2_ERROR_ARTIFACT, "outside of its string table",
                 [&] { aoti::bind_to_addresses(bytes, provider, [](const std::string&) { return 4096; }); });
  }
}

}  // namespace

int main() {
  a_name_may_be_imported_often();
  long_names_are_refused();
  imports_are_counted();
  names_of_sections_are_compared_and_not_searched();
  const std::string object = elasticity();
  bind_to_provider(object, provider);
  segments_lie_in_the_file_in_their_order(object);
  entries_lead_into_segments(object);
  relocations_lead_into_segments(object);
  tables_of_names_are_sound(object);
  tables_that_share_bytes_are_refused();
  return 0;
}
