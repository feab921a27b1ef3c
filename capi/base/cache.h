// Size of the processor's cache.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace neml2_capi {

// Returns the bytes of one core's second-level cache, or a common size where the system does not tell.
inline std::int64_t level2_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return std::clamp<std::int64_t>(bytes, 1 << 18, 1 << 22);
#endif
  return 1 << 19;
}

}  // namespace neml2_capi
