// Version, and the last error of each thread.
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include "capi/abi/guard.h"
#include "capi/exec/log.h"

namespace neml2_capi::abi {
namespace {

struct LastError {
  std::int32_t status = NEML2_OK;
  std::string message;
  std::string subject;
  std::int64_t count = 0;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

std::int32_t record(std::int32_t status, const char* message, const char* subject) noexcept {
  try {
    last_error().status = status;
    ++last_error().count;
    last_error().message = message;
    last_error().subject = subject;
  } catch (...) {
    // Out of memory for the message: the status still tells.
  }
  return status;
}

}  // namespace

std::int32_t record_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return record(error.status(), error.what(), error.subject().c_str());
  } catch (const std::bad_alloc&) {
    return record(NEML2_ERROR_MEMORY, "Out of memory. Evaluate fewer points at once.", "");
  } catch (const std::length_error& error) {
    return record(NEML2_ERROR_SHAPE, error.what(), "");
  } catch (const std::exception& error) {
    return record(NEML2_ERROR_INTERNAL, error.what(), "");
  } catch (...) {
    return record(NEML2_ERROR_INTERNAL, "An exception of an unknown type.", "");
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

std::int32_t record_recoverable(std::int32_t status, const std::string& message) {
  log::write(status == NEML2_NON_FINITE ? log::Channel::model : log::Channel::newton, log::Level::warning, message);
  return record(status, message.c_str(), "");
}

}  // namespace neml2_capi::abi

using namespace neml2_capi::abi;

int32_t neml2_abi_version(void) { return NEML2_ABI_VERSION; }

const char* neml2_version(void) { return NEML2_CAPI_VERSION; }

int32_t neml2_error_status(void) { return last_error().status; }

int32_t neml2_error_message(char* buffer, int64_t capacity, int64_t* needed) {
  return copy_text(last_error().message, buffer, capacity, needed);
}

int32_t neml2_error_subject(char* buffer, int64_t capacity, int64_t* needed) {
  return copy_text(last_error().subject, buffer, capacity, needed);
}

int32_t neml2_error_record(int32_t status, const char* subject, const char* message) {
  if (status == NEML2_OK)
    return record(NEML2_ERROR_ARGUMENT, "NEML2_OK is no error to record; expected another status.", "status");
  return record(status, message ? message : "", subject ? subject : "");
}
