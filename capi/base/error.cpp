#include "capi/base/error.h"

#include <algorithm>
#include <charconv>
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

}  // namespace

AggregateError::AggregateError(std::vector<Error> errors)
    : Error(worst_of(errors).status(), worst_of(errors).subject(), message_of(errors), worst_of(errors).cause()),
      errors_(std::move(errors)) {}

std::string joined(std::initializer_list<Piece> pieces) {
  std::string message;
  for (const Piece& piece : pieces) message += piece.text();
  return message;
}

void Piece::write(long long number) { text_ = {digits_, std::to_chars(digits_, std::end(digits_), number).ptr}; }
void Piece::write(unsigned long long number) {
  text_ = {digits_, std::to_chars(digits_, std::end(digits_), number).ptr};
}
void Piece::write(double number) { text_ = print_number(digits_, sizeof digits_, "%.6g", number); }

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
