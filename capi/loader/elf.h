// Edit of a package's shared object that binds it to a provider: the built-in one, or the libtorch that was found.
//
// Only a copy is edited, in place and through the dynamic section: no byte moves. No offset in the file is trusted: one
// that leads outside is an Error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/loader/versions.h"
#include "capi/tensor/memory.h"

namespace neml2_capi::aoti {

// Function that the package calls and the provider must have.
struct Import {
  std::string name;  // in the package as compiled: "aoti_torch_clone"
  bool required;     // false for a weak reference
};

// Bytes in memory that the copy of the next package takes again.
using Bytes = std::basic_string<char, std::char_traits<char>, memory::Allocator<char>>;

struct Object {
  Bytes bytes;  // the edited copy
  std::vector<Import> imports;
  Versions versions;                   // of the system's libraries
  std::vector<std::string> producers;  // compilers and their flags, if debug information tells them
};

// Returns the name under which the provider exports a function: nml2_torch_clone for aoti_torch_clone.
std::string provided_name(std::string_view name);

// Tells whether code calls this function for its parallel regions.
bool is_of_openmp(std::string_view name);

// Edits a copy of `object`:
//   - it needs the library `provider` (of as many characters) if it needed libtorch_cpu.so or one of OpenMP;
//   - its undefined aoti_torch_*, aoti_record_*, Sleef_* names and OpenMP's become the provider's, so that no
//     libtorch and no OpenMP in the process captures them;
//   - what it prints with, and registers destructors of threads with, becomes the provider's: it prints to the log, and a
//     lack of memory does not end the process;
//   - its own definitions come first (DT_SYMBOLIC), so that no other package in the process captures its kernels;
//   - its process-wide unique symbols become weak ones, so that packages do not share state;
//   - it asks for no executable stack, which newer systems refuse;
//   - symbols of a version that this system lacks become what it has in their place: versions.h.
// Throws Error: NEML2_ERROR_ARTIFACT for a malformed shared object, NEML2_ERROR_UNSUPPORTED for one that cannot be
// edited or is for another machine.
Object bind_to_provider(std::string_view object, std::string_view provider);

// Returns the address of a function in this process, or 0.
using AddressOf = std::function<std::uintptr_t(const std::string& name)>;

// Edits a copy likewise, but binds each function that the package takes from these to its address, whatever
// libraries the process has: the symbol becomes a local one with an absolute value, which the dynamic loader looks up
// nowhere. A function without an address stays undefined. The edited copy is for this process only.
Object bind_to_addresses(std::string_view object, std::string_view provider, const AddressOf& address_of);

}  // namespace neml2_capi::aoti
