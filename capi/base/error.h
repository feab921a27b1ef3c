// Error, which every room throws; capi/abi turns it into a status and the thread's last error.
#pragma once

#include <cstdint>
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

// How joined() takes a piece of a message: a text, a character, an integer, or a number to six digits.
template <class Type>
constexpr char kind_of_piece() {
  using Piece = std::decay_t<const Type>;
  if constexpr (std::is_same_v<Piece, char>)
    return 'c';
  else if constexpr (std::is_integral_v<Piece>)
    return std::is_signed_v<Piece> ? 'i' : 'u';
  else if constexpr (std::is_floating_point_v<Piece>)
    return 'd';
  else if constexpr (std::is_same_v<Piece, std::string>)
    return 's';
  else if constexpr (std::is_same_v<Piece, std::string_view>)
    return 'v';
  else
    return 't';
}

template <class Type>
[[gnu::always_inline]] inline auto passed_piece(const Type& piece) {
  constexpr char kind = kind_of_piece<Type>();
  if constexpr (kind == 's' || kind == 'v')
    return &piece;
  else if constexpr (kind == 'i')
    return static_cast<long long>(piece);
  else if constexpr (kind == 'u')
    return static_cast<unsigned long long>(piece);
  else if constexpr (kind == 'c')
    return static_cast<int>(piece);
  else if constexpr (kind == 'd')
    return static_cast<double>(piece);
  else
    return static_cast<const char*>(piece);
}

template <class... Pieces>
inline constexpr char kinds_of_pieces[] = {kind_of_piece<Pieces>()..., '\0'};

// A function of C's kind, compiled once: one for each list of types would be 60 KB in all.
std::string joined(const char* kinds, ...);

// Returns a message of several pieces: join("expected ", n, " inputs"). A stream would keep a std::bad_alloc to itself,
// and take each file that joins much longer to compile.
template <class... Pieces>
[[gnu::always_inline]] inline std::string join(const Pieces&... pieces) {
  return joined(kinds_of_pieces<Pieces...>, passed_piece(pieces)...);
}

// Adds a name to a list for a message: "a, b, c".
inline void add_name(std::string& names, std::string_view name) {
  names.append(names.empty() ? "" : ", ").append(name);
}

}  // namespace neml2_capi
