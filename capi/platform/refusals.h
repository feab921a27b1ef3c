// Refusals of the system, with the limit that was met and what to do; and writes that fail without a signal.
#pragma once

#include <string>

#include "capi/base/error.h"

namespace neml2_capi::refusals {

// Tells whether the error (EFBIG, EMFILE, ...) is a limit of the process or of its disk: it says nothing of the artifact.
bool is_limit(int error);

// Returns what the system has against it: "the process has as many files open as it may (ulimit -n is 4)".
std::string why(int error);

// Returns what to do about a limit; else what the caller advises.
std::string remedy(int error, const std::string& otherwise);

// Returns the limit of the process behind an error: "ulimit -n is 4"; empty if the system does not tell.
std::string limit_behind(int error);

// Error NEML2_ERROR_FILE of a limit.
class LimitError : public Error {
 public:
  using Error::Error;
};

// Scope in which this thread writes files: beyond the limit of a file's size the system sends a signal, which ends a
// process that does not expect it. Here the write only fails, with EFBIG.
class QuietWrites {
 public:
  QuietWrites();
  ~QuietWrites();
  QuietWrites(const QuietWrites&) = delete;
  QuietWrites& operator=(const QuietWrites&) = delete;

 private:
  alignas(16) unsigned char before_[128];
  bool was_pending_;
};

}  // namespace neml2_capi::refusals
