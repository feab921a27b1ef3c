// Files of the system.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

namespace neml2_capi::platform {

// Writes all of the content to an open file, which the system knows by a number.
bool write_all(int number, std::string_view content);

// A file that is open. Functions that fail leave the reason in errno.
class File {
 public:
  File() = default;
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Opens a file to read; a pipe without a writer does not stop it.
  bool open(const std::filesystem::path& path);
  // Creates a file that is not there yet.
  bool create(const std::filesystem::path& path);
  bool is_open() const { return number_ >= 0; }
  bool close();

  // Returns the size of a regular file, nullopt for anything else with errno 0.
  std::optional<std::size_t> size() const;
  // Moves to a byte of the file, from which the next read() reads.
  bool seek(std::size_t position) const;
  // Reads up to `size` bytes. Returns their number, which is smaller at the end of the file, or -1.
  std::ptrdiff_t read(char* data, std::size_t size) const;
  bool write(std::string_view content) const { return write_all(number_, content); }

 private:
  int number_ = -1;
};

// Gives a file its final name, under which there is none yet.
bool publish(const std::filesystem::path& draft, const std::filesystem::path& path);

}  // namespace neml2_capi::platform
