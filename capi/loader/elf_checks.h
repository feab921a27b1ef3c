// Checks, before an object is mapped, of what the dynamic loader takes as it is and would crash on.
#pragma once

#include "capi/loader/elf_file.h"

namespace neml2_capi::aoti::elf {

// Throws Error NEML2_ERROR_ARTIFACT unless segments lie in the file and in their order, and all that the dynamic section
// tells (tables, relocations, hash tables, versions) lies in segments and leads to what is there. The code itself may do
// anything.
void check_loadable(const File& file, const DynamicSection& dynamic);

}  // namespace neml2_capi::aoti::elf
