#include "capi/aoti/libtorch/kernel_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "capi/error.h"

namespace neml2_capi::aoti::libtorch {

KernelFolder::KernelFolder(const std::vector<KernelFile>& files) {
  if (files.empty()) return;
  std::error_code ignored;
  std::string folder = (std::filesystem::temp_directory_path(ignored) / "neml2_capi-XXXXXX").string();
  const auto refuse = [&](const std::string& reason) {
    return Error(NEML2_ERROR_FILE, "",
                 join("the kernels of the package cannot be written to ", folder, ": ", reason,
                      ". Set TMPDIR to a folder that can be written to"));
  };
  if (!mkdtemp(folder.data())) throw refuse(std::strerror(errno));
  path_ = folder;
  for (const KernelFile& file : files) {
    std::ofstream out(path_ / std::filesystem::path(file.name).filename(), std::ios::binary);
    if (out.write(file.bytes.data(), std::ssize(file.bytes)).flush()) continue;
    std::filesystem::remove_all(path_, ignored);
    throw refuse(std::strerror(errno));
  }
}

KernelFolder::~KernelFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace neml2_capi::aoti::libtorch
