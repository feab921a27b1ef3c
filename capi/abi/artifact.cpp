// What an artifact holds.
#include "capi/abi/guard.h"
#include "capi/artifact/metadata.h"

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_artifact_describe(char* buffer, int64_t capacity, int64_t* needed, const char* path, const char* device,
                                const char* dtype) {
  return guarded([&] {
    const artifact::Metadata metadata =
        artifact::read_metadata(&required(path, "path"), device ? device : "cpu", dtype ? dtype : "float64");
    return copy_text(artifact::describe(metadata), buffer, capacity, needed);
  });
}
