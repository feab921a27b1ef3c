// Main program that reads files, and all files of folders, once each: a corpus, without a fuzzing engine.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz.h"

namespace fs = std::filesystem;

int main(int count, char** arguments) {
  std::vector<fs::path> files;
  for (int i = 1; i < count; ++i) {
    if (!fs::is_directory(arguments[i])) files.emplace_back(arguments[i]);
    if (fs::is_directory(arguments[i]))
      for (const auto& entry : fs::recursive_directory_iterator(arguments[i]))
        if (entry.is_regular_file()) files.push_back(entry.path());
  }
  if (files.empty()) {
    std::fprintf(stderr, "usage: %s FILE_OR_FOLDER ...; no file was found\n", arguments[0]);
    return 2;
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(stream), {});
    // Of exactly its size, so that a sanitizer sees a byte too far.
    const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
    std::fprintf(stderr, "%s\n", file.c_str());  // the last one if this breaks
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu files read\n", files.size());
}

// Of the fuzzing engine, which the mutators call; here nobody does.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t size, std::size_t) { return size; }
