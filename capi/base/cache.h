// Size of the processor's cache.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace neml2_capi {

// Returns the bytes of one core's second-level cache, or a common size if the system does not tell.
inline std::int64_t level2_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static constinit std::atomic<long> known = 0;
  long bytes = known.load(std::memory_order_relaxed);
  if (bytes == 0) known = bytes = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), -1L);
  if (bytes > 0) return std::clamp<std::int64_t>(bytes, 1 << 18, 1 << 22);
#endif
  return 1 << 19;
}

}  // namespace neml2_capi
