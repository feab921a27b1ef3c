// Libraries of backends, their streams, and the schemas of operators that they have.
#include <cstdint>

#include "capi/abi/guard.h"
#include "capi/graph/backend.h"

using namespace neml2_capi;
using namespace neml2_capi::abi;
using graph::Backend;
using graph::offered;

int32_t neml2_libtorch_suggest(const char* place) {
  return guarded([&] {
    required(place, "place");
    offered(&Backend::suggest_library, "open libtorch")(place);
  });
}

int32_t neml2_libtorch_open(const char** path, const char** version) {
  return guarded([&] {
    const graph::Library library = offered(&Backend::open_library, "open libtorch")();
    if (path) *path = library.path;
    if (version) *version = library.version;
  });
}

int32_t neml2_stream_set(int32_t index, void* stream) {
  return guarded([&] {
    if (index < 0 || index > INT16_MAX)
      throw Error(NEML2_ERROR_ARGUMENT, "index", join("The index of a CUDA device is 0 or more; got ", index, "."));
    const auto number = static_cast<std::int16_t>(index);
    graph::algebra_of({Device::Type::cuda, false, number}).use_stream(number, stream);
  });
}

int32_t neml2_operator_declare(const char* schema) {
  return guarded([&] {
    required(schema, "schema");
    offered(&Backend::declare_operator, "declare operators")(schema);
  });
}
