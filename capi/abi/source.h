// Readers of a neml2_source: numbers in, places and names out.
#pragma once

#include <optional>
#include <string_view>

#include "capi/abi/sized.h"
#include "capi/artifact/metadata.h"
#include "capi/graph/runtime.h"

namespace neml2_capi::abi {

// Returns the fields `device` and `device_index` of a structure; 0 is the CPU. Throws NEML2_ERROR_ARGUMENT.
Device device_of(std::int32_t device, std::int32_t index);

// Returns the field `runtime` of a structure. Throws NEML2_ERROR_ARGUMENT.
graph::Runtime runtime_of(std::int32_t runtime);

const char* name_of(graph::Runtime runtime);

// Returns the bytes of a source in memory, nullopt for one with a path. Throws NEML2_ERROR_ARGUMENT for both at once.
std::optional<std::string_view> content_of(const neml2_source& source);

// Returns the metadata of the artifact that a source names, for a device. Throws for what is no artifact's.
artifact::Metadata metadata_of(const neml2_source& source, Device device);

}  // namespace neml2_capi::abi
