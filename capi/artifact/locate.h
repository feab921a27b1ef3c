// Where the files of an artifact are. In schemas 12 and 14: metadata.json, and packages in <device>/<dtype>; in schema
// 7 both in <device>, in 2 and 3 both in the artifact itself, with the metadata in <model>_meta.json.
#pragma once

#include <filesystem>
#include <string>

namespace neml2_capi::artifact {

// The family of a device: "cuda" of "cuda:0". Throws NEML2_ERROR_UNSUPPORTED where there is no such device.
std::string device_family(const std::string& device);

// The metadata of the artifact at `path`: its folder, a device folder in it, or the file itself. Throws
// NEML2_ERROR_FILE, NEML2_ERROR_UNSUPPORTED (another device), NEML2_ERROR_NAME (several models in one folder).
std::filesystem::path find_metadata(const std::filesystem::path& path, const std::string& family);

// The packages beside metadata.json. Throws NEML2_ERROR_UNSUPPORTED.
std::filesystem::path choose_leaf(const std::filesystem::path& root, const std::string& family,
                                  const std::string& dtype);

// Throws NEML2_ERROR_UNSUPPORTED where packages for this device cannot run.
void require_runnable(const std::filesystem::path& leaf, const std::string& family);

}  // namespace neml2_capi::artifact
