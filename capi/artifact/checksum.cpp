// Checksum of an artifact.
#include "capi/archive/archive.h"
#include "capi/archive/files.h"
#include "capi/archive/sha256.h"
#include "capi/artifact/field.h"
#include "capi/artifact/locate.h"
#include "capi/artifact/metadata.h"
#include "capi/base/error.h"
#include "capi/base/json_document.h"
#include "capi/base/limits.h"

namespace neml2_capi::artifact {
namespace {

// Returns a line for each kernel with the checksum of its graph; of its source, if its graph's is not told.
std::string kernels_of(const Metadata& metadata) {
  const std::string file = (kernels_folder(metadata.leaf) / "kernels.json").string();
  try {
    const JsonDocument document(archive::content_of(file, limits::json_bytes));
    std::string lines;
    for (const Field& kernel : Field(file, document.root())["kernels"].list()) {
      const auto graph = kernel.find("graph_checksum");
      const Field told = graph && !graph->is_null() ? *graph : kernel["source_checksum"];
      lines += join(kernel["name"].text(), " ", told.text(), "\n");
    }
    return lines;
  } catch (const JsonError& error) {
    throw Error(NEML2_ERROR_ARTIFACT, file, join(file, " is not JSON: ", error.what(), ". Compile the model again."));
  }
}

}  // namespace

std::string checksum(const Metadata& metadata) {
  std::string lines =
      join(name_of(metadata.dtype), " ", archive::sha256(archive::content_of(metadata.file, limits::json_bytes)), "\n");
  bool packages = false;
  for (const std::string& package : packages_of(metadata)) {
    if (!archive::is_file(metadata.leaf / package)) continue;
    lines += join(package, " ", archive::directory_checksum(metadata.leaf / package), "\n");
    packages = true;
  }
  if (!packages) lines += kernels_of(metadata);
  return archive::sha256(lines);
}

}  // namespace neml2_capi::artifact
