// Tables of a shared object that the dynamic loader follows without a check of its own: symbols and their hash table,
// versions, relocations. Each function throws Error NEML2_ERROR_ARTIFACT for one that leads elsewhere.
#pragma once

#include <functional>

#include "capi/loader/elf_file.h"

namespace neml2_capi::aoti::elf {

// Returns the number of symbols. A look-up in the hash table ends, and finds a symbol that is there.
std::uint64_t check_symbols(const File& file, const DynamicSection& dynamic);

// A version that the object needs of a library, with the addresses of both entries.
struct NeededVersion {
  Elf64_Verneed library;
  Elf64_Vernaux version;
  std::uint64_t library_at;
  std::uint64_t version_at;
};

// Calls `visit` for each version that the object needs, and `define` for the name of each that it defines, as the dynamic
// loader walks them.
using VisitNeeded = std::function<void(const NeededVersion&)>;
using VisitDefined = std::function<void(const Elf64_Verdef& version, std::uint64_t name)>;
void each_needed_version(const File& file, const DynamicSection& dynamic, const VisitNeeded& visit);
void each_defined_version(const File& file, const DynamicSection& dynamic, const VisitDefined& define);

// Every symbol has a known version, of a library that is needed.
void check_versions(const File& file, const DynamicSection& dynamic, std::uint64_t symbols);

// Relocations write into writable segments, and take symbols that are there.
void check_relocations(const File& file, const DynamicSection& dynamic, std::uint64_t symbols);

}  // namespace neml2_capi::aoti::elf
