// The arrays of a benchmark: a folder with index.txt, one line "NAME SIZE..." per variable with the sizes of one point,
// and NAME.bin, float64, point after point. A program takes as many points of them as it is asked to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace benchmark {

struct Array {
  std::string name;
  std::vector<std::int64_t> shape;  // of one point
  std::vector<double> values;

  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t extent : shape) n *= extent;
    return n;
  }
};

// `rows`: how many points to read; 0 for all.
inline std::vector<Array> read_arrays(const std::filesystem::path& folder, std::int64_t rows) {
  std::vector<Array> arrays;
  std::ifstream index(folder / "index.txt");
  if (!index) throw std::runtime_error("no arrays in " + folder.string());
  for (std::string line; std::getline(index, line);) {
    std::istringstream words(line);
    Array array;
    words >> array.name;
    for (std::int64_t extent; words >> extent;) array.shape.push_back(extent);
    const std::filesystem::path path = folder / (array.name + ".bin");
    const std::size_t wanted = rows ? static_cast<std::size_t>(rows * array.size())
                                    : static_cast<std::size_t>(std::filesystem::file_size(path)) / sizeof(double);
    array.values.resize(wanted);
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(array.values.data()), static_cast<std::streamsize>(8 * wanted)))
      throw std::runtime_error(path.string() + " has less points than asked for");
    arrays.push_back(std::move(array));
  }
  return arrays;
}

inline const Array& find(const std::vector<Array>& arrays, const std::string& name) {
  for (const Array& array : arrays)
    if (array.name == name) return array;
  throw std::runtime_error("no array " + name);
}

}  // namespace benchmark
