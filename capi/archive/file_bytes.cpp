#include "capi/archive/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "capi/base/error.h"
#include "capi/base/refusals.h"

namespace neml2_capi::archive {
namespace {

class Descriptor {
 public:
  // A pipe without a writer does not stop the opening.
  explicit Descriptor(const std::filesystem::path& path)
      : value(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (value >= 0) close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  const int value;
};

// Reads up to `size` bytes. Returns their number, which is smaller at the end of the file, or -1.
std::ptrdiff_t read_all(int file, char* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = read(file, data + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<std::ptrdiff_t>(done);
}

}  // namespace

FileBytes::FileBytes(const std::filesystem::path& path, std::size_t most) {
  const auto unreadable = [&](const std::string& why, const char* remedy = "Check the path and its permissions.",
                              std::int32_t status = NEML2_ERROR_FILE) {
    return Error(status, path.filename().string(), join("Cannot read ", path.string(), ": ", why, ". ", remedy));
  };
  const Descriptor file(path);
  if (file.value < 0 && refusals::is_limit(errno))
    throw Error(  // it passes: no reason to go on without what could not be read
        NEML2_ERROR_FILE, path.filename().string(),
        join("Cannot read ", path.string(), ": ", refusals::why(errno), ". ", refusals::remedy(errno, "")));
  if (file.value < 0) throw unreadable(errno == ENOENT ? "there is no such file" : std::strerror(errno));
  struct stat info {};
  if (fstat(file.value, &info) != 0) throw unreadable(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw unreadable("it is not a file");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > most)
    throw unreadable(join("it has ", size, " bytes, expected at most ", most), "Pass a file of an artifact.",
                     NEML2_ERROR_ARTIFACT);
  if (size == 0) return;
  data_ = std::make_unique_for_overwrite<char[]>(size);
  size_ = size;
  const std::ptrdiff_t count = read_all(file.value, data_.get(), size);
  if (count == static_cast<std::ptrdiff_t>(size)) return;
  const std::string why = count < 0 ? std::strerror(errno) : "it became shorter while it was read";
  throw unreadable(why, "Read it when no program writes it.");
}

}  // namespace neml2_capi::archive
