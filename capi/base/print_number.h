// Numbers of messages.
#pragma once

#include <cstddef>
#include <string_view>

namespace neml2_capi {

// Prints a number as printf() of Linux does, with a point in any locale, and NaN without its sign. std::to_chars() would
// bring tables of 0.1 MB with it.
std::string_view print_number(char* text, std::size_t size, const char* format, double number);

}  // namespace neml2_capi
