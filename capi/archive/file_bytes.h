// The bytes of a file, read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "capi/base/error.h"
#include "capi/platform/files.h"

namespace neml2_capi::archive {

// Returns the error NEML2_ERROR_FILE of a file that cannot be read, for errno: 0 if it is not a regular file.
Error unreadable(const std::filesystem::path& path, int error);

// Returns the error NEML2_ERROR_ARTIFACT of a file of more than `most` bytes.
Error too_long(const std::filesystem::path& path, std::size_t size, std::size_t most);

// Opens a regular file to read, and returns its size. Throws Error NEML2_ERROR_FILE.
std::size_t open(platform::File& file, const std::filesystem::path& path);

// Reads so many bytes of an open file. Throws Error NEML2_ERROR_FILE if it has less.
void read_all(const platform::File& file, const std::filesystem::path& path, char* data, std::size_t size);

// Content of a regular file as it was when it was read: a file that is mapped instead ends the process (SIGBUS) if
// another program shortens it.
class FileBytes {
 public:
  FileBytes() = default;
  // Throws Error NEML2_ERROR_FILE for one that is missing, not a regular file, or cannot be read to its end,
  // NEML2_ERROR_ARTIFACT for one of more than `most` bytes.
  explicit FileBytes(const std::filesystem::path& path, std::size_t most = SIZE_MAX);

  std::string_view view() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
};

}  // namespace neml2_capi::archive
