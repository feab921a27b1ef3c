// What every layer throws; capi/abi turns it into a status and the thread's last error.
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
  // `status` is one of NEML2_ERROR_*; `subject` names the variable, option, segment or file concerned.
  Error(std::int32_t status, std::string subject, const std::string& message)
      : std::runtime_error(message), status_(status), subject_(std::move(subject)) {}

  std::int32_t status() const noexcept { return status_; }
  const std::string& subject() const noexcept { return subject_; }

 private:
  std::int32_t status_;
  std::string subject_;
};

// Several errors that one call met side by side: as an error it is the worst, and its message tells the first few.
class AggregateError : public Error {
 public:
  // At least one, in the order in which they are told. A fatal one is worse than any that is recoverable; of the
  // fatal ones the first counts.
  explicit AggregateError(std::vector<Error> errors);

  const std::vector<Error>& errors() const noexcept { return errors_; }

 private:
  std::vector<Error> errors_;
};

// The exception in flight.
Error current_error();

// A message from pieces: join("expected ", n, " inputs").
template <class... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Add one more name to a list for a message: "a, b, c".
inline void add_name(std::string& names, std::string_view name) {
  names.append(names.empty() ? "" : ", ").append(name);
}

}  // namespace neml2_capi
