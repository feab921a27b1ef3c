// Values made once for the life of the process, without a variable that waits for its first use.
#pragma once

#include <atomic>
#include <memory>

namespace neml2_capi {

// Returns what `make` makes, and keeps it in `found`. Two threads may make it at once, and find the same.
template <class Value>
const Value& once(std::atomic<const Value*>& found, Value (*make)()) {
  if (const Value* known = found.load(std::memory_order_acquire)) return *known;
  auto made = std::make_unique<const Value>(make());
  const Value* expected = nullptr;
  return found.compare_exchange_strong(expected, made.get()) ? *made.release() : *expected;
}

}  // namespace neml2_capi
