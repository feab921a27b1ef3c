// Device code of a package, whose files lie in its archive and must lie on disk when kernels are loaded.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "capi/packages/elsewhere.h"

namespace neml2_capi::aoti::libtorch {

// Folder of the user's own, which lives, locked, as long as this object. The next process removes folders without a
// lock, which killed processes leave behind.
class KernelFolder {
 public:
  // Writes the files, or makes no folder if there are none. Throws Error NEML2_ERROR_FILE.
  explicit KernelFolder(const std::vector<KernelFile>& files);
  ~KernelFolder();
  KernelFolder(const KernelFolder&) = delete;
  KernelFolder& operator=(const KernelFolder&) = delete;

  // Returns the folder, or null if there is none.
  const char* path() const { return path_.empty() ? nullptr : path_.c_str(); }

 private:
  void remove();

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace neml2_capi::aoti::libtorch
