#include "capi/archive/files.h"

#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <mutex>
#include <system_error>

#include "capi/archive/archive.h"

namespace neml2_capi::archive {
namespace {

std::mutex mutex;
auto& mounts = *new std::map<std::string, const Mount*>;  // by path; models may outlive static objects

std::filesystem::path next_path() {
  static std::atomic<std::uint64_t> count{0};
  return "memory:" + std::to_string(++count);
}

// Returns the mount of a path, and the name that the rest of the path is in it.
std::pair<const Mount*, std::string> find(const std::filesystem::path& path) {
  const std::string& text = path.native();
  if (!text.starts_with("memory:")) return {};
  const std::size_t slash = text.find('/');
  const std::lock_guard lock(mutex);
  const auto found = mounts.find(text.substr(0, slash));
  if (found == mounts.end()) return {};
  return {found->second, slash == std::string::npos ? "" : text.substr(slash + 1)};
}

}  // namespace

Mount::Mount(std::string_view content) : content_(content), path_(next_path()) {
  for (auto& [name, bytes] : Archive("the artifact in memory", content_).find_all("")) files_.emplace(name, bytes);
  const std::lock_guard lock(mutex);
  mounts.emplace(path_.native(), this);
}

Mount::~Mount() {
  const std::lock_guard lock(mutex);
  mounts.erase(path_.native());
}

std::optional<std::string_view> mounted(const std::filesystem::path& path) {
  const auto [mount, name] = find(path);
  if (!mount) return std::nullopt;
  const auto file = mount->files().find(name);
  if (file == mount->files().end()) return std::nullopt;
  return file->second;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return mounted(path) || std::filesystem::is_regular_file(path, ignored);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto [mount, name] = find(path);
  if (!mount) return std::filesystem::is_directory(path, ignored);
  const auto first = mount->files().lower_bound(name.empty() ? name : name + "/");
  return first != mount->files().end() && (name.empty() || first->first.starts_with(name + "/"));
}

std::optional<std::string> read(const std::filesystem::path& path) {
  if (const auto content = mounted(path)) return std::string(*content);
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return std::nullopt;
  return content;
}

}  // namespace neml2_capi::archive
