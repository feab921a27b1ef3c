// The host's wish that what runs shall end.
#pragma once

#include <atomic>
#include <cstdint>

namespace neml2_capi::interrupt {

using Asked = std::int32_t (*)(void* context);

// Sets the host's function, or none for null. See neml2_interrupt_set().
void set(Asked asked, void* context);

// Threads of the library never ask: the host's function runs on threads of the host alone.
void never_ask_here();
// Ends what this thread of the library runs once `end` is true; null: it is run to its end.
void end_here_with(const std::atomic<bool>* end);

extern std::atomic<bool> is_set;
void ask();

// Throws NEML2_ERROR_INTERRUPTED if the host wishes an end. Long work calls it every few milliseconds, short work
// never: it may read the clock.
inline void check() {
  if (is_set.load(std::memory_order_relaxed)) ask();
}

}  // namespace neml2_capi::interrupt
