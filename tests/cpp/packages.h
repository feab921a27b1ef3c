// Packages to test with: where the compiled ones are, and how to make damaged ones of them.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "capi/archive/archive.h"
#include "capi/base/error.h"

namespace neml2_capi::testing {

inline void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  std::exit(1);
}

// `body` must throw an Error of this status whose message contains `text`.
inline void expect_error(std::int32_t status, const std::string& text, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    expect(error.status() == status, join("status ", error.status(), " instead of ", status, ": ", error.what()));
    expect(std::string(error.what()).find(text) != std::string::npos, join("\"", text, "\" in: ", error.what()));
    return;
  }
  expect(false, join("an error that says: ", text));
}

// The folder of the committed examples.
inline std::filesystem::path artifacts() {
  const char* folder = std::getenv("NEML2_TEST_ARTIFACTS");
  expect(folder != nullptr, "NEML2_TEST_ARTIFACTS names the folder of the examples: run ctest, or set it");
  return folder;
}

// A package of theirs: example("elasticity").
inline std::filesystem::path example(const std::string& package) {
  const std::string model = package.substr(0, package.find('_'));
  return artifacts() / model / "cpu" / "float64" / (package + ".pt2");
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A folder that is removed at the end.
class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() / join("neml2_capi_test_", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

inline std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// A zip archive of stored entries, by name.
inline std::string zip(const std::map<std::string, std::string>& entries) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (; bytes > 0; --bytes, value >>= 8) text += static_cast<char>(value & 0xff);
    return text;
  };
  std::string files, directory;
  for (const auto& [name, content] : entries) {
    const std::string common = number(0, 4) + number(0, 4) + number(crc32(content), 4) + number(content.size(), 4) +
                               number(content.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory +=
        number(0x02014b50, 4) + number(20, 2) + number(20, 2) + common + number(0, 10) + number(files.size(), 4) + name;
    files += number(0x04034b50, 4) + number(20, 2) + common + name + content;
  }
  return files + directory + number(0x06054b50, 4) + number(0, 4) + number(entries.size(), 2) +
         number(entries.size(), 2) + number(directory.size(), 4) + number(files.size(), 4) + number(0, 2);
}

// What a runtime reads of a package, by the end of its name. Edit and write() to make another package.
using Parts = std::map<std::string, std::string>;

inline Parts parts_of(const std::filesystem::path& package) {
  const archive::Archive archive(package);
  Parts parts;
  for (const char* suffix : {".wrapper.so", ".wrapper.cpp", ".wrapper.json", ".wrapper_metadata.json"})
    if (const auto entry = archive.find(suffix)) parts["model/data/aotinductor/model/x" + std::string(suffix)] = *entry;
  return parts;
}

inline std::string& part(Parts& parts, const std::string& suffix) {
  return parts["model/data/aotinductor/model/x" + suffix];
}

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace neml2_capi::testing
