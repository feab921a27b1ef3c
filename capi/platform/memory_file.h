// File that exists only to be opened with dlopen.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace neml2_capi::platform {

// The file lives in memory if the system allows it, else without a name in a folder that allows execution: the
// system takes it back with the process, however that ends. If /proc cannot be read it has a name until the
// destructor runs. With NEML2_CAPI_KEEP_OBJECTS=<folder> it is written there and stays, for gdb and perf.
class MemoryFile {
 public:
  // `name` appears in the list of mappings, for people. The content may come from a file, `original`, which serves if
  // no other may be written. Throws Error NEML2_ERROR_FILE if no place works; a LimitError if limits are why.
  MemoryFile(std::string_view name, std::string_view content, const std::filesystem::path& original = {});
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Path that no file of this process had before, since the dynamic loader takes a known path for the file that it
  // opened first. It is valid while this object lives.
  const std::string& path() const { return path_; }

 private:
  class Search;  // for a place

  std::string path_;
  int descriptor_ = -1;
  bool remove_ = false;
};

}  // namespace neml2_capi::platform
