// Places of an artifact's files. Schemas 12 and 14 have metadata.json, and packages in <device>/<dtype>. Schema 7 has
// both in <device>, schemas 2 and 3 in the artifact itself; their metadata is <model>_meta.json.
#pragma once

#include <filesystem>
#include <string>

namespace neml2_capi::artifact {

// Returns the family of a device: "cuda" of "cuda:0". Throws NEML2_ERROR_UNSUPPORTED for an unknown device.
std::string device_family(const std::string& device);

// Throws NEML2_ERROR_FILE for a file that can be neither metadata nor a stub: a package, an archive. It tells of an
// artifact nearby.
void refuse_other_files(const std::filesystem::path& path);

// Returns the metadata file of the artifact at `path`: its folder, a device folder in it, or the file itself. Throws
// NEML2_ERROR_FILE, NEML2_ERROR_UNSUPPORTED (another device), NEML2_ERROR_NAME (several models in one folder).
std::filesystem::path find_metadata(const std::filesystem::path& path, const std::string& family);

// Returns the folder of the packages beside metadata.json. Throws NEML2_ERROR_UNSUPPORTED if there is none.
std::filesystem::path choose_leaf(const std::filesystem::path& root, const std::string& family,
                                  const std::string& dtype);

// Returns the folder of the point kernels beside this one of packages, and whether it is there. They are for the CPU.
std::filesystem::path kernels_folder(const std::filesystem::path& leaf);
bool have_kernels(const std::filesystem::path& leaf);

// Throws NEML2_ERROR_UNSUPPORTED if packages for this device cannot run.
void require_runnable(const std::filesystem::path& leaf, const std::string& family);

}  // namespace neml2_capi::artifact
