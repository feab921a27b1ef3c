// What packages run on: names, and libtorch.
#include "capi/abi/runtime.h"

#include <cstdint>
#include <string_view>

#include "capi/abi/guard.h"
#include "capi/libtorch/library.h"
#include "capi/libtorch/schema.h"
#include "capi/libtorch/stream.h"

namespace neml2_capi::abi {

aoti::Runtime runtime_named(const char* name) {
  if (!name) return aoti::Runtime::automatic;
  for (const auto runtime :
       {aoti::Runtime::automatic, aoti::Runtime::builtin, aoti::Runtime::libtorch, aoti::Runtime::tensors})
    if (std::string_view(name) == name_of(runtime)) return runtime;
  throw Error(NEML2_ERROR_NAME, name,
              join("There is no runtime '", name, "'. The runtimes are: auto, builtin, libtorch, tensors."));
}

const char* name_of(aoti::Runtime runtime) {
  switch (runtime) {
    case aoti::Runtime::automatic: return "auto";
    case aoti::Runtime::builtin: return "builtin";
    case aoti::Runtime::libtorch: return "libtorch";
    case aoti::Runtime::tensors: return "tensors";
  }
  return "";
}

}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_libtorch_suggest(const char* place) {
  return guarded([&] {
    aoti::libtorch::Library::suggest(&required(place, "place"));
    return NEML2_OK;
  });
}

int32_t neml2_libtorch_find(const char** path, const char** version) {
  return guarded([&] {
    const auto& library = aoti::libtorch::Library::get();
    if (path) *path = library.path().c_str();
    if (version) *version = library.version().c_str();
    return NEML2_OK;
  });
}

int32_t neml2_stream_use(int32_t index, void* stream) {
  return guarded([&] {
    if (index < 0 || index > INT16_MAX)
      throw Error(NEML2_ERROR_ARGUMENT, "index", join("The index of a CUDA device is 0 or more; got ", index, "."));
    aoti::libtorch::use_stream(static_cast<std::int16_t>(index), stream);
    return NEML2_OK;
  });
}

int32_t neml2_operator_declare(const char* schema) {
  return guarded([&] {
    aoti::libtorch::declare(&required(schema, "schema"));
    return NEML2_OK;
  });
}
