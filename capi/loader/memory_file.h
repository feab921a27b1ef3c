// A file that exists only to be opened with dlopen.
#pragma once

#include <string>
#include <string_view>

namespace neml2_capi::aoti {

// Lives in memory where the system allows it, else as a file without a name in a folder that allows execution: the
// system takes it back with the process, however that ends. Only where /proc cannot be read it has a name, until this
// object goes. With NEML2_CAPI_KEEP_OBJECTS=<folder> it is written there and stays, for gdb and perf.
class MemoryFile {
 public:
  // `name` is for people: it appears in the list of mappings. Throws Error NEML2_ERROR_FILE where nothing worked.
  MemoryFile(std::string_view name, std::string_view content);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // A path that no file of this process had before: the dynamic loader takes a path that it knows for the file that
  // it opened under it then. Valid while this object lives.
  const std::string& path() const { return path_; }

 private:
  void keep_in(const std::string& folder, std::string_view name, std::string_view content);
  bool take_nameless(int descriptor, std::string_view content);
  bool take_named(const std::string& folder, std::string_view name, std::string_view content);

  std::string path_;
  int descriptor_ = -1;
  bool remove_ = false;
};

}  // namespace neml2_capi::aoti
