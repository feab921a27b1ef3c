// Contract of the readers with untrusted bytes, and pieces of harnesses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "capi/base/error.h"

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity, unsigned seed);
// Of libFuzzer: changes bytes at random, returns the new size.
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t capacity);
}

namespace neml2_capi::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Splits an input at its NUL bytes into `count` texts; the last one takes the rest, missing ones are empty.
inline std::vector<std::string_view> split(std::string_view input, std::size_t count) {
  std::vector<std::string_view> texts;
  while (texts.size() + 1 < count) {
    const std::size_t end = std::min(input.find('\0'), input.size());
    texts.push_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  texts.push_back(input);
  return texts;
}

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// Reads untrusted bytes. The reader returns, or throws an Error of a status that a file may cause, with a message; within
// 5 s of the processor, whoever else has it.
template <class Read>
void read_untrusted(Read&& read) {
  const std::clock_t begin = std::clock();
  try {
    read();
  } catch (const Error& error) {
    const std::int32_t status = error.status();
    const bool of_a_file = status == NEML2_ERROR_ARTIFACT || status == NEML2_ERROR_UNSUPPORTED ||
                           status == NEML2_ERROR_FILE || status == NEML2_ERROR_NAME;
    if (!of_a_file) std::fprintf(stderr, "status %d: %s\n", status, error.what());
    require(of_a_file, "a damaged file has the status ARTIFACT, UNSUPPORTED, FILE or NAME");
    require(*error.what() != 0, "an error has a message");
  }
  require(std::clock() - begin < 5 * CLOCKS_PER_SEC, "bytes are read within 5 s");
}

}  // namespace neml2_capi::fuzz
