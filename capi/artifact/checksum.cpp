// Checksum of an artifact.
#include "capi/archive/archive.h"
#include "capi/archive/files.h"
#include "capi/archive/sha256.h"
#include "capi/artifact/metadata.h"
#include "capi/base/error.h"
#include "capi/base/limits.h"

namespace neml2_capi::artifact {

std::string checksum(const Metadata& metadata, const std::string& graphs) {
  std::string lines =
      join(name_of(metadata.dtype), " ", archive::sha256(archive::content_of(metadata.file, limits::json_bytes)), "\n");
  for (const std::string& package : packages_of(metadata))
    if (archive::is_file(metadata.leaf / package))
      lines += join(package, " ", archive::directory_checksum(metadata.leaf / package), "\n");
  return archive::sha256(lines + graphs);
}

}  // namespace neml2_capi::artifact
