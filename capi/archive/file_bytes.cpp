#include "capi/archive/file_bytes.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "capi/base/error.h"
#include "capi/platform/files.h"
#include "capi/platform/refusals.h"

namespace neml2_capi::archive {

FileBytes::FileBytes(const std::filesystem::path& path, std::size_t most) {
  const auto unreadable = [&](const std::string& why, const char* remedy = "Check the path and its permissions.",
                              std::int32_t status = NEML2_ERROR_FILE) {
    return Error(status, path.filename().string(), join("Cannot read ", path.string(), ": ", why, ". ", remedy));
  };
  platform::File file;
  if (!file.open(path) && refusals::is_limit(errno))
    throw Error(  // it passes: no reason to go on without what could not be read
        NEML2_ERROR_FILE, path.filename().string(),
        join("Cannot read ", path.string(), ": ", refusals::why(errno), ". ", refusals::remedy(errno, "")));
  if (!file.is_open()) throw unreadable(errno == ENOENT ? "there is no such file" : std::strerror(errno));
  const std::optional<std::size_t> found = file.size();
  if (!found) throw unreadable(errno != 0 ? std::strerror(errno) : "it is not a file");
  const std::size_t size = *found;
  if (size > most)
    throw unreadable(join("it has ", size, " bytes, expected at most ", most), "Pass a file of an artifact.",
                     NEML2_ERROR_ARTIFACT);
  if (size == 0) return;
  data_ = std::make_unique_for_overwrite<char[]>(size);
  size_ = size;
  const std::ptrdiff_t count = file.read(data_.get(), size);
  if (count == static_cast<std::ptrdiff_t>(size)) return;
  const std::string why = count < 0 ? std::strerror(errno) : "it became shorter while it was read";
  throw unreadable(why, "Read it when no program writes it.");
}

}  // namespace neml2_capi::archive
