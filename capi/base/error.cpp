#include "capi/base/error.h"

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <iterator>
#include <new>

#include "capi/base/print_number.h"

namespace neml2_capi {
namespace {

const Error& worst_of(const std::vector<Error>& errors) {
  const auto first_fatal =
      std::find_if(errors.begin(), errors.end(), [](const Error& error) { return error.status() < NEML2_OK; });
  if (first_fatal != errors.end()) return *first_fatal;
  return *std::max_element(errors.begin(), errors.end(),
                           [](const Error& a, const Error& b) { return a.status() < b.status(); });
}

std::string message_of(const std::vector<Error>& errors) {
  constexpr std::size_t most = 8;
  std::string message = join(errors.size(), " sub-batches failed.");
  for (std::size_t i = 0; i < std::min(errors.size(), most); ++i) message += join("\n  ", errors[i].what());
  if (errors.size() > most) message += join("\n  and ", errors.size() - most, " more");
  return message;
}

template <class Number>
void append(std::string& message, Number number) {
  char digits[24];
  message.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
}

void append_piece(std::string& message, char kind, std::va_list& pieces) {
  char digits[24];
  switch (kind) {
    case 'c': message += static_cast<char>(va_arg(pieces, int)); break;
    case 'i': append(message, va_arg(pieces, long long)); break;
    case 'u': append(message, va_arg(pieces, unsigned long long)); break;
    case 'd': message += print_number(digits, sizeof digits, "%.6g", va_arg(pieces, double)); break;
    case 's': message += *va_arg(pieces, const std::string*); break;
    case 'v': message += *va_arg(pieces, const std::string_view*); break;
    default: message += va_arg(pieces, const char*);
  }
}

// Ends a list of pieces, also if there is no memory for the message.
struct ListOfPieces {
  std::va_list pieces;
  ~ListOfPieces() { va_end(pieces); }
};

}  // namespace

AggregateError::AggregateError(std::vector<Error> errors)
    : Error(worst_of(errors).status(), worst_of(errors).subject(), message_of(errors), worst_of(errors).cause()),
      errors_(std::move(errors)) {}

std::string joined(const char* kinds, ...) {
  std::string message;
  ListOfPieces list;
  va_start(list.pieces, kinds);
  for (const char* kind = kinds; *kind; ++kind) append_piece(message, *kind, list.pieces);
  return message;
}

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {NEML2_ERROR_MEMORY, "", out_of_memory};
  } catch (const std::length_error& error) {
    return {NEML2_ERROR_SHAPE, "", error.what()};
  } catch (const std::exception& error) {
    return {NEML2_ERROR_INTERNAL, "", error.what()};
  } catch (...) {
    return {NEML2_ERROR_INTERNAL, "", "An exception of an unknown type."};
  }
}

}  // namespace neml2_capi
