#include "capi/libtorch/kernel_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "capi/base/error.h"
#include "capi/platform/files.h"
#include "capi/platform/refusals.h"

namespace neml2_capi::aoti::libtorch {
namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = "neml2_capi-kernels-";

// Returns a descriptor that locks the folder until it is closed or its process ends, or -1 if another process has
// the lock, or the file system has no locks.
int lock(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  const int reason = errno;
  close(descriptor);
  errno = reason;
  return -1;
}

// Removes the folders that killed processes left in `parent`.
void sweep(const fs::path& parent) {
  std::error_code ignored;
  for (fs::directory_iterator entry(parent, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
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

// Creates a folder in `parent`, which `locked` locks. Returns an empty path if that is not possible.
fs::path create_locked(const fs::path& parent, int& locked) {
  for (;;) {
    std::string folder = (parent / prefix).string() + "XXXXXX";
    if (!mkdtemp(folder.data())) return {};
    locked = lock(folder);
    // Another process may delete the folder before we lock it, as one without an owner.
    if (locked < 0 && errno != EWOULDBLOCK && errno != ENOENT) return folder;
    struct stat info {};
    if (locked >= 0 && fstat(locked, &info) == 0 && info.st_nlink > 0) return folder;
    if (locked >= 0) close(locked);
  }
}

}  // namespace

KernelFolder::KernelFolder(const std::vector<KernelFile>& files) {
  if (files.empty()) return;
  const refusals::QuietWrites quiet;
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  const auto refuse = [&] {
    return Error(NEML2_ERROR_FILE, "",
                 join("The kernels of the package cannot be written to ", parent.string(), ": ", refusals::why(errno),
                      ". Set TMPDIR to a folder that can be written to."));
  };
  errno = error.value();
  if (error) throw refuse();
  sweep(parent);
  path_ = create_locked(parent, lock_);
  if (path_.empty()) throw refuse();
  for (const KernelFile& file : files) {
    platform::File out;
    if (out.create(path_ / fs::path(file.name).filename()) && out.write(file.bytes) && out.close()) continue;
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
