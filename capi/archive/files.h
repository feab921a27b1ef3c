// Files of an artifact: in a folder, or the entries of an archive in memory, which has a path of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace neml2_capi::archive {

// An archive of stored entries in memory. Its files are found under path() while it lives.
class Mount {
 public:
  // Copies the content. Throws NEML2_ERROR_ARTIFACT as Archive does.
  explicit Mount(std::string_view content);
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, std::string_view>& files() const { return files_; }

 private:
  const std::string content_;
  const std::filesystem::path path_;
  std::map<std::string, std::string_view> files_;
};

// Returns the content of a file of a mounted archive, nullopt for any other path. It lives as long as the mount.
std::optional<std::string_view> mounted(const std::filesystem::path& path);

bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// Returns the content of a regular file of at most `most` bytes. Throws as FileBytes does.
std::string content_of(const std::filesystem::path& path, std::size_t most = SIZE_MAX);

// The same; nullopt if it cannot be read.
std::optional<std::string> read(const std::filesystem::path& path, std::size_t most = SIZE_MAX);

}  // namespace neml2_capi::archive
