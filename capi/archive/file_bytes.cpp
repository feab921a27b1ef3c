#include "capi/archive/file_bytes.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "capi/base/error.h"
#include "capi/platform/refusals.h"

namespace neml2_capi::archive {

namespace {

Error refused(const std::filesystem::path& path, const std::string& why, const std::string& remedy,
              std::int32_t status = NEML2_ERROR_FILE) {
  return Error(status, path.filename().string(), join("Cannot read ", path.string(), ": ", why, ". ", remedy));
}

}  // namespace

Error unreadable(const std::filesystem::path& path, int error) {
  if (refusals::is_limit(error)) return refused(path, refusals::why(error), refusals::remedy(error, ""));
  const char* why = error == ENOENT ? "there is no such file" : std::strerror(error);
  return refused(path, error == 0 ? "it is not a file" : why, "Check the path and its permissions.");
}

Error too_long(const std::filesystem::path& path, std::size_t size, std::size_t most) {
  return refused(path, join("it has ", size, " bytes, expected at most ", most), "Pass a file of an artifact.",
                 NEML2_ERROR_ARTIFACT);
}

std::size_t open(platform::File& file, const std::filesystem::path& path) {
  if (!file.open(path)) throw unreadable(path, errno);
  const std::optional<std::size_t> size = file.size();
  if (!size) throw unreadable(path, errno);
  return *size;
}

void read_all(const platform::File& file, const std::filesystem::path& path, char* data, std::size_t size) {
  const std::ptrdiff_t count = file.read(data, size);
  if (count == static_cast<std::ptrdiff_t>(size)) return;
  const std::string why = count < 0 ? std::strerror(errno) : "it became shorter while it was read";
  throw refused(path, why, "Read it when no program writes it.");
}

FileBytes::FileBytes(const std::filesystem::path& path, std::size_t most) {
  platform::File file;
  const std::size_t size = open(file, path);
  if (size > most) throw too_long(path, size, most);
  if (size == 0) return;
  data_ = std::make_unique_for_overwrite<char[]>(size);
  size_ = size;
  read_all(file, path, data_.get(), size);
}

}  // namespace neml2_capi::archive
