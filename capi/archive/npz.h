// A file of arrays, as numpy.savez() writes it: a zip archive with one stored entry for each array.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capi/tensor/tensor.h"

namespace neml2_capi::archive {

class Npz {
 public:
  // An array, which numpy.load() gives by this name.
  void add(const std::string& name, const Tensor& array);
  // A text, in an entry of this name.
  void add_text(const std::string& name, std::string text);

  // Write a new file: under another name first, so that whoever sees it sees all of it. Throws NEML2_ERROR_FILE where
  // it cannot be written, or is there already.
  void write(const std::filesystem::path& path) const;

 private:
  struct Entry {
    std::string name;
    std::string content;
  };
  std::vector<Entry> entries_;
};

}  // namespace neml2_capi::archive
