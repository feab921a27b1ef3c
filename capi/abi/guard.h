// The edge of the library: the only place where an exception becomes a status.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capi/base/error.h"
#include "capi/base/floating_point.h"

namespace neml2_capi::abi {

// Record the exception in flight as this thread's last error, and return its status.
std::int32_t record_exception() noexcept;

// Record that a call returned a positive status; `parts`, where several parts of it did, each with its own.
std::int32_t record_recoverable(std::int32_t status, std::int32_t cause, const std::string& message,
                                const std::vector<Error>& parts = {});

// How many errors this thread has recorded, and the last one.
std::int64_t errors_recorded();
const std::string& last_message();

// Copy a text as neml2_error_message() does.
std::int32_t copy_text(const std::string& text, char* buffer, std::int64_t capacity, std::int64_t* needed);

// Run `body`, which returns a status, in the default floating-point environment.
template <class Body>
std::int32_t guarded(Body&& body) noexcept {
  const DefaultFloatingPoint environment;
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return record_exception();
  }
}

// Throws NEML2_ERROR_ARGUMENT, naming the argument, when it is NULL.
template <class T>
T& required(T* argument, const char* name) {
  if (!argument)
    throw Error(NEML2_ERROR_ARGUMENT, name, join("The argument '", name, "' is NULL; it must point to something."));
  return *argument;
}

}  // namespace neml2_capi::abi
