// File of arrays, as numpy.savez() writes it: a zip archive with one stored entry for each array.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capi/tensor/tensor.h"

namespace neml2_capi::archive {

class Npz {
 public:
  // Adds an array, which numpy.load() finds by this name.
  void add(const std::string& name, const Tensor& array);
  // Adds a text in an entry of this name.
  void add_text(const std::string& name, std::string text);

  // Writes a new file, which gets its name when it is complete. Throws NEML2_ERROR_FILE if it cannot be written, or
  // is there already.
  void write(const std::filesystem::path& path) const;

 private:
  struct Entry {
    std::string name;
    std::string content;
  };
  std::vector<Entry> entries_;
};

}  // namespace neml2_capi::archive
