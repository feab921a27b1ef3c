// Version, and the last error of each thread.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "capi/abi/guard.h"
#include "capi/base/log.h"

namespace neml2_capi::abi {
namespace {

struct LastError {
  std::int32_t status = NEML2_OK;
  std::int32_t cause = NEML2_CAUSE_NONE;
  std::string message;
  std::string subject;
  std::vector<Error> parts;  // where there are several
  std::int64_t count = 0;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

std::int32_t record(std::int32_t status, std::int32_t cause, const char* message, const char* subject,
                    const std::vector<Error>& parts = {}) noexcept {
  try {
    LastError& last = last_error();
    last.status = status;
    last.cause = cause;
    ++last.count;
    last.parts.clear();
    last.message = message;
    last.subject = subject;
    last.parts = parts;
  } catch (...) {
    // Out of memory for the message: the status still tells.
  }
  return status;
}

std::int64_t count_of(const LastError& last) {
  return last.status == NEML2_OK ? 0 : std::max<std::int64_t>(std::ssize(last.parts), 1);
}

}  // namespace

std::int32_t record_exception() noexcept try { throw; } catch (const AggregateError& error) {
  return record(error.status(), error.cause(), error.what(), error.subject().c_str(), error.errors());
} catch (...) {
  try {
    const Error error = current_error();
    return record(error.status(), error.cause(), error.what(), error.subject().c_str());
  } catch (...) {
    return record(NEML2_ERROR_MEMORY, NEML2_CAUSE_NONE, "Out of memory.", "");
  }
}

std::int64_t errors_recorded() { return last_error().count; }

const std::string& last_message() { return last_error().message; }

std::int32_t copy_text(const std::string& text, char* buffer, std::int64_t capacity, std::int64_t* needed) {
  if (needed) *needed = static_cast<std::int64_t>(text.size()) + 1;
  if (!buffer || capacity <= 0) return NEML2_OK;
  const std::size_t length = std::min(text.size(), static_cast<std::size_t>(capacity) - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
  return NEML2_OK;
}

std::int32_t record_recoverable(std::int32_t status, std::int32_t cause, const std::string& message,
                                const std::vector<Error>& parts) {
  log::write(status == NEML2_NON_FINITE ? log::Channel::model : log::Channel::newton, log::Level::warning, message);
  return record(status, cause, message.c_str(), "", parts);
}

}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_abi_version(void) { return NEML2_ABI_VERSION; }

const char* neml2_version(void) { return NEML2_CAPI_VERSION; }

int32_t neml2_error_status(void) { return last_error().status; }

int32_t neml2_error_cause(void) { return last_error().cause; }

int32_t neml2_error_message(char* buffer, int64_t capacity, int64_t* needed) {
  return copy_text(last_error().message, buffer, capacity, needed);
}

int32_t neml2_error_subject(char* buffer, int64_t capacity, int64_t* needed) {
  return copy_text(last_error().subject, buffer, capacity, needed);
}

int32_t neml2_error_count(int64_t* out) {
  return guarded([&] { required(out, "out") = count_of(last_error()); });
}

int32_t neml2_error_get(int32_t* status, int32_t* cause, char* buffer, int64_t capacity, int64_t* needed,
                        int64_t index) {
  return guarded([&] {
    const LastError& last = last_error();
    if (index < 0 || index >= count_of(last))
      throw Error(NEML2_ERROR_ARGUMENT, "index",
                  join("The last failed call met ", count_of(last), " errors; there is none at ", index, "."));
    const Error error = last.parts.empty() ? Error(last.status, last.subject, last.message, last.cause)
                                           : last.parts[static_cast<std::size_t>(index)];
    if (status) *status = error.status();
    if (cause) *cause = error.cause();
    return copy_text(error.what(), buffer, capacity, needed);
  });
}

int32_t neml2_error_record(int32_t status, int32_t cause, const char* subject, const char* message) {
  return guarded([&] {
    if (status == NEML2_OK)
      throw Error(NEML2_ERROR_ARGUMENT, "status", "NEML2_OK is no error to record; expected another status.");
    if (cause < NEML2_CAUSE_NONE)
      throw Error(NEML2_ERROR_ARGUMENT, "cause", join("A cause is 0 or greater; got ", cause, "."));
    return record(status, cause, message ? message : "", subject ? subject : "");
  });
}
