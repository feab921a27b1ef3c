// The bytes of a file, read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "capi/tensor/memory.h"

namespace neml2_capi::archive {

// Content of a regular file as it was when it was read: a file that is mapped instead ends the process (SIGBUS) where
// another program shortens it. Memory of a large file waits for the next one.
class FileBytes {
 public:
  FileBytes() = default;
  // Throws Error NEML2_ERROR_FILE for one that is missing, not a regular file, or cannot be read to its end,
  // NEML2_ERROR_ARTIFACT for one of more than `most` bytes.
  explicit FileBytes(const std::filesystem::path& path, std::size_t most = SIZE_MAX);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::string_view view() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace neml2_capi::archive
