// The device code of a package, which is files of its archive and must be files on disk when kernels are loaded.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace neml2_capi::aoti::libtorch {

struct KernelFile {
  std::string name;
  std::string bytes;
};

// A folder of the user's own, as long as this lives. It is locked so long: where a process was killed, the next one
// finds its folders without a lock, and removes them.
class KernelFolder {
 public:
  // No folder where there are no files. Throws Error NEML2_ERROR_FILE.
  explicit KernelFolder(const std::vector<KernelFile>& files);
  ~KernelFolder();
  KernelFolder(const KernelFolder&) = delete;
  KernelFolder& operator=(const KernelFolder&) = delete;

  // Null where there is none.
  const char* path() const { return path_.empty() ? nullptr : path_.c_str(); }

 private:
  void remove();

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace neml2_capi::aoti::libtorch
