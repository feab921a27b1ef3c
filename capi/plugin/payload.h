// Segment of the file of Linux or macOS, or section of the DLL, that `neml2-capi plugin` added to this library, and that is mapped with it.
#pragma once

#include <string_view>

namespace neml2_capi::plugin {

struct Payload {
  std::string_view mappings;   // JSON, see mapping.h
  std::string_view artifacts;  // an archive for neml2_source of each material, one behind the other
  std::string_view provider;   // the file of a shared object, which libneml2_capi opens
};

// Throws neml2::Error if this is the library as it was built, without an artifact.
Payload payload();

}  // namespace neml2_capi::plugin
