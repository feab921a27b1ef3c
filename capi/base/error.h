// Error, which every room throws; capi/abi turns it into a status and the thread's last error.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
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

// Piece of a message: a text, a character, an integer, or a number to six digits. It must not outlive what it is made of.
class Piece {
 public:
  template <std::convertible_to<std::string_view> Text>
  Piece(const Text& text) : text_(text) {}
  Piece(char character) : text_(digits_, 1) { digits_[0] = character; }
  template <std::integral Number>
  Piece(Number number) {
    if constexpr (std::is_signed_v<Number>)
      write(static_cast<long long>(number));
    else
      write(static_cast<unsigned long long>(number));
  }
  Piece(double number) { write(number); }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  std::string_view text() const { return text_; }

 private:
  void write(long long number);
  void write(unsigned long long number);
  void write(double number);

  char digits_[24];
  std::string_view text_;
};

std::string joined(std::initializer_list<Piece> pieces);

// Returns a message of several pieces: join("expected ", n, " inputs"). A stream would keep a std::bad_alloc to itself,
// and take each file that joins much longer to compile.
template <class... Pieces>
std::string join(const Pieces&... pieces) {
  return joined({Piece(pieces)...});
}

// Adds a name to a list for a message: "a, b, c".
inline void add_name(std::string& names, std::string_view name) {
  names.append(names.empty() ? "" : ", ").append(name);
}

}  // namespace neml2_capi
