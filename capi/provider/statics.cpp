// Static variables that a package makes at their first use: nml2a_guard_acquire is __cxa_guard_acquire. The C++ library
// has the child of a fork wait for ever for one that another thread of the parent was making; here the child makes it.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "capi/provider/exports.h"

namespace {

// Compiled code reads the first byte only: 1 once the variable is made. The second word holds the process that makes it.
struct Guard {
  std::atomic<unsigned char> is_made;
  std::atomic<std::int32_t> maker;
};
static_assert(sizeof(Guard) == sizeof(std::uint64_t));

}  // namespace

// Returns 1 if the caller is to make the variable, and 0 once it is made.
NML2_EXPORT int nml2a_guard_acquire(Guard* guard) {
  const std::int32_t self = getpid();
  while (!guard->is_made.load(std::memory_order_acquire)) {
    std::int32_t maker = guard->maker.load(std::memory_order_relaxed);
    if (maker == self) {
      sched_yield();
    } else if (guard->maker.compare_exchange_weak(maker, self, std::memory_order_acquire)) {
      if (!guard->is_made.load(std::memory_order_acquire)) return 1;
      guard->maker.store(0, std::memory_order_release);
    }
  }
  return 0;
}

NML2_EXPORT void nml2a_guard_release(Guard* guard) {
  guard->is_made.store(1, std::memory_order_release);
  guard->maker.store(0, std::memory_order_release);
}

NML2_EXPORT void nml2a_guard_abort(Guard* guard) { guard->maker.store(0, std::memory_order_release); }
