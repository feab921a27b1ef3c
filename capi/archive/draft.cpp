// A file that appears under its name when it is complete.
#include "capi/archive/draft.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include "capi/base/error.h"

namespace neml2_capi::archive {

Draft::Draft(const std::filesystem::path& path)
    : path_(path), draft_(path.parent_path() / join(".", path.filename().string(), ".tmp")) {
  if (!file_.create(draft_)) fail(refusals::why(errno));
}

Draft::~Draft() {
  std::error_code ignored;
  file_.close();
  std::filesystem::remove(draft_, ignored);
}

void Draft::put(std::string_view bytes) {
  if (!file_.write(bytes)) fail(refusals::why(errno));
}

void Draft::publish() {
  close();
  if (!platform::publish(draft_, path_)) fail(errno == EEXIST ? "there is such a file already" : std::strerror(errno));
}

void Draft::replace() {
  close();
  std::error_code failure;
  const auto there = std::filesystem::status(path_, failure);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    fail("it is a folder, a device or a pipe; expected a file");
  std::filesystem::rename(draft_, path_, failure);
  if (failure) fail(failure.message());
}

void Draft::close() {
  if (!file_.close()) fail(refusals::why(errno));
}

void Draft::fail(const std::string& why) const {
  throw Error(NEML2_ERROR_FILE, path_.string(),
              join(path_.string(), " cannot be written: ", why, ". Choose another name or folder."));
}

}  // namespace neml2_capi::archive
