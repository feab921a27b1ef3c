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

namespace neml2_capi::archive {

class Archive {
 public:
  // Maps a file, or takes that of a mounted archive. Throws Error: NEML2_ERROR_FILE where it cannot be read,
  // NEML2_ERROR_ARTIFACT where it is not a zip, is truncated, damaged (CRC), or has compressed entries.
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
    std::size_t offset;
    std::size_t size;
  };
  // File mapped into memory, since packages have megabytes.
  class Mapping {
   public:
    Mapping() = default;
    explicit Mapping(const std::filesystem::path& path);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    std::string_view bytes() const { return {data_, size_}; }

   private:
    char* data_ = nullptr;
    std::size_t size_ = 0;
  };

  void read_directory();

  std::filesystem::path path_;
  std::optional<Mapping> file_;  // none for a content in memory
  std::string_view bytes_;
  std::vector<Entry> entries_;
};

// CRC-32 of the directory at the end of an archive, which holds a checksum of every entry. Throws as the reading does.
std::uint32_t directory_checksum(const std::filesystem::path& path);

}  // namespace neml2_capi::archive
