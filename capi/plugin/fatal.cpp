#include "capi/plugin/fatal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

// Abaqus brings two of these; a text is followed by its length, behind all arguments.
extern "C" {
__attribute__((weak)) void stdb_abqerr_(const int* lop, const char* string, const int* integers, const double* reals,
                                        const char* texts, std::size_t length, std::size_t length_of_texts);
__attribute__((weak)) void xit_();
__attribute__((weak)) void xplb_abqerr_(const int* lop, const char* string, const int* integers, const double* reals,
                                        const char* texts, std::size_t length, std::size_t length_of_texts);
__attribute__((weak)) void xplb_exit_();
}

namespace neml2_capi::plugin {

void fatal(const std::string& message) noexcept {
  const auto report = stdb_abqerr_ ? stdb_abqerr_ : xplb_abqerr_;  // of Standard, or of Explicit
  const auto leave = stdb_abqerr_ ? xit_ : xplb_exit_;
  if (report && leave) {
    std::string text = message.substr(0, 500);
    std::replace(text.begin(), text.end(), '%', '_');  // %I, %R and %S would stand for numbers and texts
    const int stop_now = -3, integer = 0;
    const double real = 0;
    report(&stop_now, text.c_str(), &integer, &real, "        ", text.size(), 8);
    leave();
    return;
  }
  std::fflush(stdout);
  std::fprintf(stderr, "***ERROR: %s\n", message.c_str());
  std::exit(1);
}

}  // namespace neml2_capi::plugin
