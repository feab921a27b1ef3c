// libtorch, its streams, and the schemas of operators that it has.
#include <cstdint>

#include "capi/abi/guard.h"
#include "capi/libtorch/library.h"
#include "capi/libtorch/schema.h"
#include "capi/libtorch/stream.h"

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_libtorch_suggest(const char* place) {
  return guarded([&] { aoti::libtorch::Library::suggest(&required(place, "place")); });
}

int32_t neml2_libtorch_open(const char** path, const char** version) {
  return guarded([&] {
    const auto& library = aoti::libtorch::Library::get();
    if (path) *path = library.path().c_str();
    if (version) *version = library.version().c_str();
  });
}

int32_t neml2_stream_set(int32_t index, void* stream) {
  return guarded([&] {
    if (index < 0 || index > INT16_MAX)
      throw Error(NEML2_ERROR_ARGUMENT, "index", join("The index of a CUDA device is 0 or more; got ", index, "."));
    aoti::libtorch::use_stream(static_cast<std::int16_t>(index), stream);
  });
}

int32_t neml2_operator_declare(const char* schema) {
  return guarded([&] { aoti::libtorch::declare(&required(schema, "schema")); });
}
