// Errors of several checks of a package, reported together: a failed check does not prevent the next one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "capi/base/error.h"

namespace neml2_capi::aoti {

class CollectedErrors {
 public:
  explicit CollectedErrors(std::string package) : package_(std::move(package)) {}

  template <class Check>
  void collect(Check&& check) {
    try {
      check();
    } catch (const Error& error) {
      add(error.status(), error.what());
    } catch (const std::length_error& error) {
      add(NEML2_ERROR_UNSUPPORTED, error.what());
    }
  }
  bool empty() const { return text_.empty(); }

  // One error of the first status, with a line for each.
  void raise_if_any() const {
    if (!empty()) throw Error(status_, package_, text_);
  }

 private:
  void add(std::int32_t status, const char* what) {
    if (empty()) status_ = status;
    text_ += join(empty() ? "" : "\n", package_, ": ", what);
  }

  std::string package_;
  std::string text_;
  std::int32_t status_ = NEML2_OK;
};

}  // namespace neml2_capi::aoti
