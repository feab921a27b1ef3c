// This process, its machine, and memory of the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace neml2_capi::platform {

// The name of this system in kernels.json.
#if defined(_WIN32)
inline constexpr const char* system_name = "windows";
#elif defined(__APPLE__)
inline constexpr const char* system_name = "macos";
#else
inline constexpr const char* system_name = "linux";
#endif

std::int64_t process_id();
// Tells whether there is a process of this number.
bool is_running(std::int64_t process);
std::string host_name();
std::string processor_name();
// Returns the bytes of one core's second-level cache, or a common size if the system does not tell.
std::int64_t level2_cache();
std::tm utc(std::time_t time);

// Returns memory of `size` bytes, a multiple of `alignment`, or null.
void* allocate(std::size_t alignment, std::size_t size) noexcept;
void release(void* block) noexcept;

}  // namespace neml2_capi::platform
