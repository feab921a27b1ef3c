// Structures that begin with their size, by which a program and a library of different releases understand each other.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "capi/abi/guard.h"

namespace neml2_capi::abi {

// Throws NEML2_ERROR_ARGUMENT unless `size`, which the caller has set, is one that the structure has or may get.
void require_size(std::int64_t size, std::size_t known, const char* name);

// Returns a structure as this library knows it. Throws where a field that it does not know is set.
template <class T>
T read_sized(const T* given, const char* name) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::int64_t size = required(given, name).size;
  require_size(size, sizeof(T), name);
  const char* bytes = reinterpret_cast<const char*>(given);
  for (std::size_t i = sizeof(T); i < static_cast<std::size_t>(size); ++i)
    if (bytes[i] != 0)
      throw Error(NEML2_ERROR_ARGUMENT, name,
                  join("The structure '", name, "' has a field that this library does not know, at its byte ", i,
                       ": leave it 0, or use a library of the header's release."));
  T known;
  std::memcpy(&known, given, sizeof(T));
  return known;
}

// Fills a structure; what this library does not know of it becomes 0.
template <class T>
void write_sized(T* out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  value.size = required(out, "out").size;
  require_size(value.size, sizeof(T), "out");
  std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, static_cast<std::size_t>(value.size) - sizeof(T));
  std::memcpy(out, &value, sizeof(T));
}

}  // namespace neml2_capi::abi
