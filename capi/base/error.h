// Error, which every room throws; capi/abi turns it into a status and the thread's last error.
#pragma once

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "neml2_capi.h"

namespace neml2_capi {

class Error : public std::runtime_error {
 public:
  // `status` is one of NEML2_ERROR_*; `subject` names the variable, option, segment or file concerned; `cause` is one of
  // NEML2_CAUSE_*, or a number of the host's.
  Error(std::int32_t status, std::string subject, const std::string& message, std::int32_t cause = NEML2_CAUSE_NONE)
      : std::runtime_error(message), status_(status), cause_(cause), subject_(std::move(subject)) {}

  std::int32_t status() const noexcept { return status_; }
  std::int32_t cause() const noexcept { return cause_; }
  const std::string& subject() const noexcept { return subject_; }

 private:
  std::int32_t status_;
  std::int32_t cause_;
  std::string subject_;
};

// Several errors of one call. Status and subject are the worst error's; the message tells the first few.
class AggregateError : public Error {
 public:
  // `errors` holds at least one, in the order to tell them. A fatal error is worse than any recoverable one; the first
  // of several fatal ones counts.
  explicit AggregateError(std::vector<Error> errors);

  const std::vector<Error>& errors() const noexcept { return errors_; }

 private:
  std::vector<Error> errors_;
};

// Message of NEML2_ERROR_MEMORY, which needs none itself.
inline constexpr char out_of_memory[] =
    "Out of memory. Evaluate fewer points at once, or leave the process more memory.";

// Returns the exception in flight as an Error. Throws std::bad_alloc if there is no memory for it.
Error current_error();

// Returns a message of several pieces: join("expected ", n, " inputs"). A stream would keep a std::bad_alloc to itself,
// and lose the rest of the message.
template <class... Pieces>
std::string join(const Pieces&... pieces) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);
  (out << ... << pieces);
  return out.str();
}

// Adds a name to a list for a message: "a, b, c".
inline void add_name(std::string& names, std::string_view name) {
  names.append(names.empty() ? "" : ", ").append(name);
}

}  // namespace neml2_capi
