#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "capi/platform/files.h"

namespace neml2_capi::platform {

bool File::open(const std::filesystem::path& path) {
  number_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return is_open();
}

bool File::create(const std::filesystem::path& path) {
  number_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return is_open();
}

bool File::close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

std::optional<std::size_t> File::size() const {
  struct stat info {};
  if (fstat(number_, &info) != 0) return std::nullopt;
  errno = 0;
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  return static_cast<std::size_t>(info.st_size);
}

bool File::seek(std::size_t position) const { return ::lseek(number_, static_cast<off_t>(position), SEEK_SET) >= 0; }

std::ptrdiff_t File::read(char* data, std::size_t size) const {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(number_, data + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<std::ptrdiff_t>(done);
}

bool write_all(int number, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(number, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// A link never replaces a file. A rename, which does, is for file systems without links.
bool publish(const std::filesystem::path& draft, const std::filesystem::path& path) {
  if (::link(draft.c_str(), path.c_str()) == 0) return ::unlink(draft.c_str()), true;
  std::error_code ignored;
  if (errno != EEXIST && std::filesystem::exists(path, ignored)) errno = EEXIST;
  return errno != EEXIST && ::rename(draft.c_str(), path.c_str()) == 0;
}

}  // namespace neml2_capi::platform
#endif
