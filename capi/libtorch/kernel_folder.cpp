#include "capi/libtorch/kernel_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "capi/base/error.h"

namespace neml2_capi::aoti::libtorch {
namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = "neml2_capi-kernels-";

// A descriptor that locks the folder, until it is closed or its process ends; -1 where another has the lock. Where the
// file system has no locks, none is held, and none can be had.
int lock(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  const int reason = errno;
  close(descriptor);
  errno = reason;
  return -1;
}

// What processes left that were killed.
void sweep(const fs::path& place) {
  std::error_code ignored;
  for (fs::directory_iterator entry(place, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    struct stat info {};
    const fs::path& path = entry->path();
    if (!path.filename().string().starts_with(prefix)) continue;
    if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) continue;
    const int locked = lock(path);
    if (locked < 0) continue;
    std::error_code failed;
    fs::remove_all(path, failed);
    close(locked);
  }
}

// A new folder in `place`, which `locked` locks. Empty where that is not possible.
fs::path create_locked(const fs::path& place, int& locked) {
  for (;;) {
    std::string folder = (place / prefix).string() + "XXXXXX";
    if (!mkdtemp(folder.data())) return {};
    locked = lock(folder);
    // Another process may have been faster, and taken it for one that was left: then it is gone, or soon will be.
    if (locked < 0 && errno != EWOULDBLOCK && errno != ENOENT) return folder;
    struct stat info {};
    if (locked >= 0 && fstat(locked, &info) == 0 && info.st_nlink > 0) return folder;
    if (locked >= 0) close(locked);
  }
}

}  // namespace

KernelFolder::KernelFolder(const std::vector<KernelFile>& files) {
  if (files.empty()) return;
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  const auto refuse = [&] {
    return Error(NEML2_ERROR_FILE, "",
                 join("the kernels of the package cannot be written to ", place.string(), ": ", std::strerror(errno),
                      ". Set TMPDIR to a folder that can be written to"));
  };
  errno = error.value();
  if (error) throw refuse();
  sweep(place);
  path_ = create_locked(place, lock_);
  if (path_.empty()) throw refuse();
  for (const KernelFile& file : files) {
    std::ofstream out(path_ / fs::path(file.name).filename(), std::ios::binary);
    if (out.write(file.bytes.data(), std::ssize(file.bytes)).flush()) continue;
    const Error refused = refuse();
    remove();
    throw refused;
  }
}

KernelFolder::~KernelFolder() { remove(); }

void KernelFolder::remove() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace neml2_capi::aoti::libtorch
