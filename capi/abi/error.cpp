// Version, and the last error of each thread.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "capi/abi/guard.h"
#include "capi/base/log.h"
#include "capi/platform/thread_end.h"

namespace neml2_capi::abi {
namespace {

struct Words {
  std::string message;
  std::string subject;
  std::vector<Error> parts;  // if there are several
};

// Last error of a thread. What takes memory stands elsewhere, so that a lack of it can be told.
struct LastError {
  std::int32_t status = NEML2_OK;
  std::int32_t cause = NEML2_CAUSE_NONE;
  std::int64_t count = 0;
  const char* brief = nullptr;  // the message, in place of the words for which there was no memory
  Words* words = nullptr;       // null before the first
  thread_end::Record at_end{};

  bool is_worded() const { return words && !brief; }
  std::string_view message() const { return brief ? brief : words ? std::string_view(words->message) : ""; }
  std::string_view subject() const { return is_worded() ? std::string_view(words->subject) : ""; }
  const std::vector<Error>* parts() const { return is_worded() && !words->parts.empty() ? &words->parts : nullptr; }
};

constinit thread_local LastError last{};

void forget_words() noexcept { delete std::exchange(last.words, nullptr); }

// Keeps the words of an error until the next one, or the end of the thread. Throws std::bad_alloc.
void keep(Words words) {
  last.at_end.run = forget_words;
  thread_end::call(last.at_end);
  if (!last.words) last.words = new Words;
  *last.words = std::move(words);
}

// Records an error without words of its own. Results that were written keep their status.
std::int32_t record_briefly(std::int32_t status, std::int32_t cause) noexcept {
  const bool is_written = status > NEML2_OK;
  last.status = is_written ? status : NEML2_ERROR_MEMORY;
  last.cause = is_written ? cause : NEML2_CAUSE_NONE;
  last.brief = is_written
                   ? "Some points failed; there was no memory to say more. Bind the report's NEML2_REPORT_STATUS."
                   : out_of_memory;
  ++last.count;
  return last.status;
}

std::int32_t record(std::int32_t status, std::int32_t cause, const char* message, std::string_view subject,
                    const std::vector<Error>& parts = {}) noexcept {
  try {
    keep({message, std::string(subject), parts});
  } catch (...) {
    return record_briefly(status, cause);
  }
  last.status = status;
  last.cause = cause;
  last.brief = nullptr;
  ++last.count;
  return status;
}

std::int64_t count_of_errors() {
  if (last.status == NEML2_OK) return 0;
  return last.parts() ? std::ssize(*last.parts()) : 1;
}

}  // namespace

std::int32_t record_exception() noexcept try { throw; } catch (const AggregateError& error) {
  return record(error.status(), error.cause(), error.what(), error.subject(), error.errors());
} catch (const Error& error) {
  return record(error.status(), error.cause(), error.what(), error.subject());
} catch (const std::bad_alloc&) {
  return record_briefly(NEML2_ERROR_MEMORY, NEML2_CAUSE_NONE);
} catch (...) {
  try {
    const Error error = current_error();
    return record(error.status(), error.cause(), error.what(), error.subject());
  } catch (...) {
    return record_briefly(NEML2_ERROR_MEMORY, NEML2_CAUSE_NONE);
  }
}

std::int64_t errors_recorded() { return last.count; }

std::string_view last_message() { return last.message(); }

std::int32_t copy_text(std::string_view text, char* buffer, std::int64_t capacity, std::int64_t* needed) {
  if (needed) *needed = static_cast<std::int64_t>(text.size()) + 1;
  if (!buffer || capacity <= 0) return NEML2_OK;
  std::size_t length = std::min(text.size(), static_cast<std::size_t>(capacity) - 1);
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  while (length > 0 && length < text.size() && continues(length)) --length;  // no part of a character in UTF-8
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
  return NEML2_OK;
}

void refuse_index(std::int64_t index, std::size_t count, const std::string& owner, const char* entries) {
  throw Error(NEML2_ERROR_ARGUMENT, "index",
              join(owner, " has ", count, " ", entries, "; there is none at ", index, ". Indices count from 0."));
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

int32_t neml2_error_status(void) { return last.status; }

int32_t neml2_error_cause(void) { return last.cause; }

int32_t neml2_error_message(char* buffer, int64_t capacity, int64_t* needed) {
  return copy_text(last.message(), buffer, capacity, needed);
}

int32_t neml2_error_subject(char* buffer, int64_t capacity, int64_t* needed) {
  return copy_text(last.subject(), buffer, capacity, needed);
}

int32_t neml2_error_count(int64_t* out) {
  return guarded([&] { required(out, "out") = count_of_errors(); });
}

int32_t neml2_error_get(int32_t* status, int32_t* cause, char* buffer, int64_t capacity, int64_t* needed,
                        int64_t index) {
  return guarded([&] {
    if (index < 0 || index >= count_of_errors())
      throw Error(NEML2_ERROR_ARGUMENT, "index",
                  join("The last failed call met ", count_of_errors(), " errors; there is none at ", index, "."));
    const Error* part = last.parts() ? &(*last.parts())[static_cast<std::size_t>(index)] : nullptr;
    if (status) *status = part ? part->status() : last.status;
    if (cause) *cause = part ? part->cause() : last.cause;
    return copy_text(part ? part->what() : last.message(), buffer, capacity, needed);
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
