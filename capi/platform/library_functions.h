// Functions of a library that is found at run time, by name.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "capi/base/error.h"
#include "capi/platform/shared_object.h"

namespace neml2_capi::platform {

// Sets a pointer to a function of an open library, or adds its name to those that are lacking.
template <class Function>
void look_up(void* library, const char* name, Function*& function, std::string& lacking) {
  function = reinterpret_cast<Function*>(function_of(library, name));
  if (!function) add_name(lacking, name);
}

// Returns what `make` makes once for the life of the process. Two threads may make it at once, and find the same.
template <class Value>
const Value& once(std::atomic<const Value*>& found, Value (*make)()) {
  if (const Value* known = found.load(std::memory_order_acquire)) return *known;
  auto made = std::make_unique<const Value>(make());
  const Value* expected = nullptr;
  return found.compare_exchange_strong(expected, made.get()) ? *made.release() : *expected;
}

}  // namespace neml2_capi::platform
