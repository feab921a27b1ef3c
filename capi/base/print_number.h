// Numbers as text, in the same spelling on every system and in any locale. std::to_chars() and std::from_chars() would bring
// tables of 0.15 MB with them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace neml2_capi {

// Prints a number as printf() of Linux does, with a point, and NaN without its sign.
std::string_view print_number(char* text, std::size_t size, const char* format, double number);

// Returns the number that a whole text is, in decimal digits with a point, or inf or nan; nullopt if it is none,
// or its digits are more than a double holds.
std::optional<double> read_number(std::string_view text);

}  // namespace neml2_capi
