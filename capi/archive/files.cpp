#include "capi/archive/files.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <system_error>

#include "capi/archive/archive.h"
#include "capi/archive/file_bytes.h"
#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/platform/refusals.h"

namespace neml2_capi::archive {
namespace {

constinit locks::Mutex mutex;
constinit locks::Lazy<std::map<std::string, const Mount*>> all_mounts;  // by path

auto& mounts() { return all_mounts.get(); }

// Returns a path of constant length: descriptions, which name it, have the same length each time. It is short enough for a
// string that allocates nothing, as the destructor of a Mount needs it.
std::filesystem::path next_path() {
  static std::atomic<std::uint64_t> count{0};
  const std::string number = std::to_string(++count);
  constexpr std::size_t digits = 8;
  return "memory:" + std::string(digits - std::min(digits, number.size()), '0') + number;
}

// Returns the mount of a path, and the name that the rest of the path is in it.
std::pair<const Mount*, std::string> find(const std::filesystem::path& path) {
  const std::string text = path.generic_string();
  if (!text.starts_with("memory:")) return {};
  const std::size_t slash = text.find('/');
  const std::lock_guard lock(mutex);
  const auto found = mounts().find(text.substr(0, slash));
  if (found == mounts().end()) return {};
  return {found->second, slash == std::string::npos ? "" : text.substr(slash + 1)};
}

// Returns what is at a path. Throws if the system does not tell: what it hides is not missing.
std::filesystem::file_status status_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none)
    throw Error(NEML2_ERROR_FILE, path.string(),
                join("Cannot look at ", path.string(), ": ", error.message(), ". Check the path and its permissions."));
  return status;
}

}  // namespace

Mount::Mount(std::string_view content) : content_(content), path_(next_path()) {
  for (auto& [name, bytes] : Archive(in_memory, content_).find_all(""))
    if (!files_.emplace(name, bytes).second)
      throw Error(NEML2_ERROR_ARTIFACT, in_memory,
                  join(in_memory, ": it holds ", name, " twice. Write its archive again."));
  const std::lock_guard lock(mutex);
  mounts().emplace(path_.generic_string(), this);
}

Mount::~Mount() {
  const std::lock_guard lock(mutex);
  mounts().erase(path_.generic_string());
}

std::optional<std::string_view> mounted(const std::filesystem::path& path) {
  const auto [mount, name] = find(path);
  if (!mount) return std::nullopt;
  const auto file = mount->files().find(name);
  if (file == mount->files().end()) return std::nullopt;
  return file->second;
}

bool is_file(const std::filesystem::path& path) {
  const auto [mount, name] = find(path);
  return mount ? mount->files().contains(name) : std::filesystem::is_regular_file(status_of(path));
}

bool is_folder(const std::filesystem::path& path) {
  const auto [mount, name] = find(path);
  if (!mount) return std::filesystem::is_directory(status_of(path));
  const auto first = mount->files().lower_bound(name.empty() ? name : name + "/");
  return first != mount->files().end() && (name.empty() || first->first.starts_with(name + "/"));
}

std::string content_of(const std::filesystem::path& path, std::size_t most) {
  const auto content = mounted(path);
  if (!content) return std::string(FileBytes(path, most).view());
  if (content->size() > most) throw too_long(path, content->size(), most);
  return std::string(*content);
}

std::optional<std::string> read(const std::filesystem::path& path, std::size_t most) {
  try {
    return content_of(path, most);
  } catch (const refusals::LimitError&) {
    throw;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace neml2_capi::archive
