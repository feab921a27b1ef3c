// Sources: what to open, and what an artifact holds.
#include "capi/abi/source.h"

#include <cstdint>

#include "capi/artifact/locate.h"
#include "capi/model/options.h"

namespace neml2_capi::abi {

static_assert(static_cast<int>(graph::Runtime::automatic) == NEML2_RUNTIME_AUTO);
static_assert(static_cast<int>(graph::Runtime::builtin) == NEML2_RUNTIME_BUILTIN);
static_assert(static_cast<int>(graph::Runtime::libtorch) == NEML2_RUNTIME_LIBTORCH);
static_assert(static_cast<int>(graph::Runtime::tensors) == NEML2_RUNTIME_TENSORS);

void require_size(std::int64_t size, std::size_t first, std::size_t known, const char* name) {
  constexpr std::int64_t most = 4096;  // so that one that was never set does not lead anywhere
  // Structures grow by eight bytes at least.
  if (size >= static_cast<std::int64_t>(first) && size <= most && size % 8 == 0) return;
  throw Error(NEML2_ERROR_ARGUMENT, "size",
              join("The field 'size' of the structure '", name, "' is ", size, "; this library knows ", known,
                   " bytes: set it to the sizeof of the structure."));
}

Device device_of(std::int32_t device, std::int32_t index) {
  const bool on_cpu = device == 0 || device == NEML2_DEVICE_CPU;
  if (!on_cpu && device != NEML2_DEVICE_CUDA && device != NEML2_DEVICE_OPENCL)
    throw Error(
        NEML2_ERROR_ARGUMENT, "device",
        join("There is no device ", device, "; expected NEML2_DEVICE_CPU, NEML2_DEVICE_CUDA or NEML2_DEVICE_OPENCL."));
  if (index < 0 || index > (on_cpu ? 0 : INT16_MAX))
    throw Error(
        NEML2_ERROR_ARGUMENT, "device_index",
        join("The index of a device is 0", on_cpu ? ", except for CUDA and OpenCL" : " or more", "; got ", index, "."));
  if (on_cpu) return {};
  return {static_cast<Device::Type>(device), false, static_cast<std::int16_t>(index)};
}

graph::Runtime runtime_of(std::int32_t runtime) {
  if (runtime < NEML2_RUNTIME_AUTO || runtime > NEML2_RUNTIME_TENSORS)
    throw Error(NEML2_ERROR_ARGUMENT, "runtime",
                join("There is no runtime ", runtime, "; see NEML2_RUNTIME_AUTO and the others."));
  return static_cast<graph::Runtime>(runtime);
}

const char* name_of(graph::Runtime runtime) {
  constexpr const char* names[] = {"auto", "builtin", "libtorch", "tensors"};
  return names[static_cast<int>(runtime)];
}

std::optional<std::string_view> content_of(const neml2_source& source) {
  if (source.content_size < 0)
    throw Error(NEML2_ERROR_ARGUMENT, "content_size",
                join("The field 'content_size' must be 0 or more; got ", source.content_size, "."));
  if (!source.content) return std::nullopt;
  if (source.path)
    throw Error(NEML2_ERROR_ARGUMENT, "content", "Both 'path' and 'content' are given; leave one of them NULL.");
  return std::string_view(static_cast<const char*>(source.content), static_cast<std::size_t>(source.content_size));
}

namespace {

artifact::Metadata located(const neml2_source& source, Device device) {
  if (source.dtype != 0 && !is_dtype(source.dtype))
    throw Error(NEML2_ERROR_DTYPE, "dtype",
                join("There is no element type ", source.dtype, "; expected NEML2_FLOAT64 or NEML2_FLOAT32."));
  const char* dtype = name_of(source.dtype == 0 ? DType::float64 : static_cast<DType>(source.dtype));
  if (device.type == Device::Type::opencl) device = {};  // there are no packages for it
  if (const auto content = content_of(source)) {
    if (source.name)
      throw Error(NEML2_ERROR_ARGUMENT, "name",
                  "The field 'name' is of stubs; leave it NULL for an artifact in memory.");
    return artifact::read_metadata_in_memory(*content, device.str(), dtype);
  }
  const char* path = &required(source.path, "path");
  return source.name ? artifact::read_stub_metadata(path, source.name, device.str(), dtype)
                     : artifact::read_metadata(path, device.str(), dtype);
}

}  // namespace

artifact::Metadata metadata_of(const neml2_source& source, Device device) {
  artifact::Metadata metadata = located(source, device);
  if (source.kernels && !artifact::have_kernels(metadata.leaf))
    throw Error(
        NEML2_ERROR_ARTIFACT, "kernels",
        join("The artifact has no kernels.json, by which kernels that are linked in are known. Write both anew: "
             "neml2-capi static ARTIFACT -o FILE.c"));
  metadata.linked = source.kernels;
  metadata.kernels_only |= source.kernels != nullptr;
  return metadata;
}

}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_source_describe(char* buffer, int64_t capacity, int64_t* needed, const neml2_source* source) {
  return guarded([&] {
    const neml2_source given = read_sized(source, "source");
    const artifact::Metadata metadata = metadata_of(given, device_of(given.device, given.device_index));
    model::Options::require_solver(metadata);
    return copy_text(artifact::describe(metadata), buffer, capacity, needed);
  });
}
