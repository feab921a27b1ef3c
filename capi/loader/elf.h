// The edit of a package's shared object that binds it to a provider: the built-in one, or the libtorch that was found.
//
// Only a copy is edited, in place and through the dynamic section: no byte moves. Nothing in the file is trusted: an
// offset that leads outside ends in an Error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/tensor/memory.h"

namespace neml2_capi::aoti {

// A function that the package calls and the provider must have.
struct Import {
  std::string name;  // as the package was compiled: "aoti_torch_clone"
  bool required;     // false for a weak reference
};

// In memory that the copy for the next package takes again.
using Bytes = std::basic_string<char, std::char_traits<char>, memory::Allocator<char>>;

struct Object {
  Bytes bytes;  // the edited copy
  std::vector<Import> imports;
  std::vector<std::string> versions;   // of the system's libraries: "GLIBC_2.34", "GLIBCXX_3.4.30"
  std::vector<std::string> producers;  // the compilers and their flags, where debug information tells them
  bool openmp = false;                 // it has parallel regions
};

// The name under which the provider exports a function: nml2_torch_clone for aoti_torch_clone.
std::string provided_name(std::string_view name);

// Edit a copy of `object`:
//   - it needs the library `provider` (of as many characters) where it needed libtorch_cpu.so;
//   - its undefined aoti_torch_*, aoti_record_* and Sleef_* names become the provider's, so that no libtorch in the
//     process captures them;
//   - its own definitions come first (DT_SYMBOLIC), so that no other package in the process captures its kernels;
//   - its process-wide unique symbols become weak ones, so that packages do not share state.
// Throws Error: NEML2_ERROR_ARTIFACT where it is not a well-formed shared object, NEML2_ERROR_UNSUPPORTED where it is
// one that cannot be edited or is for another machine.
Object bind_to_provider(std::string_view object, std::string_view provider);

// Where a function is in this process; 0 where there is none.
using AddressOf = std::function<std::uintptr_t(const std::string& name)>;

// The same, but that each function that the package takes from libtorch is bound to its address, whatever libraries the
// process has: the symbol becomes a local one with an absolute value, which the dynamic loader looks up nowhere. What
// has no address stays undefined. The edited copy is for this process only.
Object bind_to_addresses(std::string_view object, std::string_view provider, const AddressOf& address_of);

}  // namespace neml2_capi::aoti
