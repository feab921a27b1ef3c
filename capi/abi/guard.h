// The edge of the library: the only place where an exception becomes a status.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "capi/base/error.h"
#include "capi/base/floating_point.h"
#include "neml2_capi_experimental.h"

namespace neml2_capi::abi {

// Records the exception in flight as this thread's last error, and returns its status.
std::int32_t record_exception() noexcept;

// Records that a call returned a positive status; `parts` holds the reports of its parts, if any.
std::int32_t record_recoverable(std::int32_t status, std::int32_t cause, const std::string& message,
                                const std::vector<Error>& parts = {});

// Return the number of errors that this thread has recorded, and the message of the last one.
std::int64_t errors_recorded();
std::string_view last_message();

// Copies a text as neml2_error_message() does.
std::int32_t copy_text(std::string_view text, char* buffer, std::int64_t capacity, std::int64_t* needed);

// Runs `body` in the default floating-point environment. Returns its status, or NEML2_OK after a body without one.
template <class Body>
std::int32_t guarded(Body&& body) noexcept {
  const DefaultFloatingPoint environment;
  try {
    if constexpr (!std::is_void_v<decltype(body())>) return body();
    body();
    return NEML2_OK;
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

[[noreturn]] void refuse_index(std::int64_t index, std::size_t count, const std::string& owner, const char* entries);

// Returns an entry of a list. Throws NEML2_ERROR_ARGUMENT for another index: "The model has 3 options; there is ..."
template <class List>
const auto& entry_of(const List& list, std::int64_t index, const std::string& owner, const char* entries) {
  if (index < 0 || index >= std::ssize(list)) refuse_index(index, list.size(), owner, entries);
  return list[static_cast<std::size_t>(index)];
}

// Tells NEML2_INPUT from NEML2_OUTPUT. Throws NEML2_ERROR_ARGUMENT for any other kind.
inline bool is_input(std::int32_t kind, const char* owner) {
  if (kind == NEML2_INPUT || kind == NEML2_OUTPUT) return kind == NEML2_INPUT;
  throw Error(NEML2_ERROR_ARGUMENT, "kind",
              join(owner, " has NEML2_INPUT and NEML2_OUTPUT; there is no kind ", kind, ". Pass one of these."));
}

}  // namespace neml2_capi::abi
