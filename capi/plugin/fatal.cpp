#include "capi/plugin/fatal.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "capi/base/error.h"
#include "capi/plugin/material.h"

#if defined(__linux__)
// Abaqus brings two of these; a text is followed by its length, behind all arguments.
extern "C" {
__attribute__((weak)) void stdb_abqerr_(const int* lop, const char* string, const int* integers, const double* reals,
                                        const char* texts, std::size_t length, std::size_t length_of_texts);
__attribute__((weak)) void xit_();
__attribute__((weak)) void xplb_abqerr_(const int* lop, const char* string, const int* integers, const double* reals,
                                        const char* texts, std::size_t length, std::size_t length_of_texts);
__attribute__((weak)) void xplb_exit_();
}
#endif

namespace neml2_capi::plugin {

const char* words_of(const std::exception& error) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&error) ? out_of_memory : error.what();
}

namespace {

// Reports by Abaqus/Standard or Explicit. False if this is another host.
bool report([[maybe_unused]] int severity, [[maybe_unused]] char* message) noexcept {
#if !defined(__linux__)
  return false;
#else
  const auto by_host = stdb_abqerr_ ? stdb_abqerr_ : xplb_abqerr_;
  if (!by_host || !(stdb_abqerr_ ? xit_ : xplb_exit_)) return false;
  const std::size_t size = std::min<std::size_t>(std::strlen(message), 500);
  message[size] = '\0';
  std::replace(message, message + size, '%', '_');  // %I, %R and %S would stand for numbers and texts
  const int integer = 0;
  const double real = 0;
  by_host(&severity, message, &integer, &real, "        ", size, 8);
  return true;
#endif
}

// Ends the analysis by the host that report() reports to.
void leave() noexcept {
#if defined(__linux__)
  stdb_abqerr_ ? xit_() : xplb_exit_();
#endif
}

}  // namespace

void warn(const char* material, const char* words) noexcept {
  constexpr int warning = -1;
  char message[4096];
  std::snprintf(message, sizeof message, "material %s: %s", material, words);
  if (!report(warning, message)) std::fprintf(stderr, "*WARNING: %s\n", message);
}

// Takes no memory.
void fatal(const char* entry, const char* cmname, const std::exception& error) noexcept {
  constexpr int stop_now = -3;
  char message[4096];
  std::snprintf(message, sizeof message, "%s, material %s: %s", entry, material_name(cmname).c_str(), words_of(error));
  if (report(stop_now, message)) {
    leave();
    return;
  }
  std::fflush(stdout);
  std::fprintf(stderr, "***ERROR: %s\n", message);
  std::exit(1);
}

}  // namespace neml2_capi::plugin
