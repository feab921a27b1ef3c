// A .pt2 package: a zip archive with stored entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/archive/file_bytes.h"

namespace neml2_capi::archive {

// The name of an archive that is a whole artifact, in messages.
inline constexpr const char* in_memory = "the artifact in memory";

class Archive {
 public:
  // Reads a file, or takes the mounted archive. Throws Error: NEML2_ERROR_FILE if it cannot be read,
  // NEML2_ERROR_ARTIFACT if it is not a zip, is truncated, damaged (CRC), has compressed entries, or entries that
  // share bytes.
  explicit Archive(const std::filesystem::path& path);
  // Reads a content in memory, which must outlive this. `name` is for messages.
  Archive(const std::string& name, std::string_view content);

  // Returns the content of the only entry whose name ends with `suffix`, or nullopt. Throws NEML2_ERROR_ARTIFACT for
  // several such entries.
  std::optional<std::string_view> find(std::string_view suffix) const;

  // Returns name and content of all entries whose names end with `suffix`.
  std::vector<std::pair<std::string, std::string_view>> find_all(std::string_view suffix) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Entry {
    std::string name;
    std::size_t begin;  // of its local header
    std::size_t offset;
    std::size_t size;
  };

  void read_directory();
  void refuse_shared_bytes(std::size_t directory) const;

  std::filesystem::path path_;
  std::optional<FileBytes> file_;  // none for a content in memory
  std::string_view bytes_;
  std::vector<Entry> entries_;
};

// CRC-32 of the directory at the end of an archive, which holds a checksum of every entry. Throws as the reading does.
std::uint32_t directory_checksum(const std::filesystem::path& path);

}  // namespace neml2_capi::archive
