// Structures that begin with their size, by which a program and a library of different releases understand each other.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "capi/abi/guard.h"

namespace neml2_capi::abi {

// Bytes of a structure when it was new: fields are only added behind them, and a program of that time passes no more.
template <class T>
inline constexpr std::size_t first_size = 0;
template <>
inline constexpr std::size_t first_size<neml2_source> = 104;
template <>
inline constexpr std::size_t first_size<neml2_model_info> = 24;
template <>
inline constexpr std::size_t first_size<neml2_variable_info> = 56;
template <>
inline constexpr std::size_t first_size<neml2_derivative_info> = 48;
template <>
inline constexpr std::size_t first_size<neml2_history_info> = 40;
template <>
inline constexpr std::size_t first_size<neml2_bound_info> = 48;
template <>
inline constexpr std::size_t first_size<neml2_tensor_info> = 56;
template <>
inline constexpr std::size_t first_size<neml2_option_info> = 40;
template <>
inline constexpr std::size_t first_size<neml2_system_info> = 32;
template <>
inline constexpr std::size_t first_size<neml2_unknown_info> = 48;
template <>
inline constexpr std::size_t first_size<neml2_graph_info> = 40;
template <>
inline constexpr std::size_t first_size<neml2_graph_variable_info> = 56;
template <>
inline constexpr std::size_t first_size<neml2_argument_info> = 32;
template <>
inline constexpr std::size_t first_size<neml2_device> = 48;
template <>
inline constexpr std::size_t first_size<neml2_call_memory> = 32;

// Throws NEML2_ERROR_ARGUMENT unless `size`, which the caller has set, is one that the structure had, has or may get.
void require_size(std::int64_t size, std::size_t first, std::size_t known, const char* name);

// Returns the bytes that a structure of the caller's and one of this library have in common.
template <class T>
std::size_t common_size(std::int64_t size, const char* name) {
  static_assert(std::is_trivially_copyable_v<T> && first_size<T> > 0 && first_size<T> <= sizeof(T));
  require_size(size, first_size<T>, sizeof(T), name);
  return std::min(static_cast<std::size_t>(size), sizeof(T));
}

// Returns a structure as this library knows it: a field that the caller does not know is 0. Throws if one that this
// library does not know, or that is reserved, is set.
template <class T>
T read_sized(const T* given, const char* name) {
  const std::int64_t size = required(given, name).size;
  const std::size_t common = common_size<T>(size, name);
  const char* bytes = reinterpret_cast<const char*>(given);
  for (std::size_t i = common; i < static_cast<std::size_t>(size); ++i)
    if (bytes[i] != 0)
      throw Error(NEML2_ERROR_ARGUMENT, name,
                  join("The structure '", name, "' has a field that this library does not know, at its byte ", i,
                       ": leave it 0, or use a library of the header's release."));
  T known{};
  std::memcpy(&known, given, common);
  if constexpr (requires { known.reserved; })
    if (known.reserved != 0)
      throw Error(NEML2_ERROR_ARGUMENT, "reserved",
                  join("The field 'reserved' of '", name, "' must be 0; got ", known.reserved, "."));
  return known;
}

// Fills a structure as far as the caller knows it; what this library does not know of it becomes 0.
template <class T>
void write_sized(T* out, T value) {
  value.size = required(out, "out").size;
  const std::size_t common = common_size<T>(value.size, "out");
  const std::size_t size = static_cast<std::size_t>(value.size);
  std::memcpy(out, &value, common);
  std::memset(reinterpret_cast<char*>(out) + common, 0, size - common);
}

}  // namespace neml2_capi::abi
