// What packages print goes to the log of libneml2_capi, a line a record: a library does not print. A name stands for one
// of the C or C++ library whose first four characters it replaces: nml24cerr for _ZSt4cerr, which is std::cerr.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <ostream>
#include <streambuf>
#include <utility>

#include "capi/provider/exports.h"

namespace {

constinit std::atomic<neml2_capi::aoti::Output> log_line = nullptr;

// The line that a thread has begun.
constinit thread_local struct {
  char text[256];
  std::size_t size;
} line{};

void end_line() noexcept {
  const auto write = log_line.load(std::memory_order_acquire);
  if (write && line.size != 0) write(line.text, line.size);
  line.size = 0;
}

void print(const char* text, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    if (text[i] == '\n' || line.size == sizeof line.text) end_line();
    if (text[i] != '\n') line.text[line.size++] = text[i];
  }
}

int print_formatted(const char* format, va_list arguments) noexcept {
  char text[1024];
  const int size = std::vsnprintf(text, sizeof text, format, arguments);
  if (size > 0) print(text, std::min(static_cast<std::size_t>(size), sizeof text - 1));
  return size;
}

bool is_printed(std::FILE* file) { return file == stderr || file == stdout; }

class Lines final : public std::streambuf {
  int_type overflow(int_type character) override {
    const char text = traits_type::to_char_type(character);
    if (!traits_type::eq_int_type(character, traits_type::eof())) print(&text, 1);
    return traits_type::not_eof(character);
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    print(text, static_cast<std::size_t>(size));
    return size;
  }
};

// Never destroyed: packages may print while the process ends.
alignas(Lines) std::byte lines[sizeof(Lines)];

}  // namespace

extern "C" {
#define NML2_STREAM [[gnu::visibility("default")]] alignas(std::ostream) std::byte
NML2_STREAM nml24cerr[sizeof(std::ostream)] = {};
NML2_STREAM nml24cout[sizeof(std::ostream)] = {};
NML2_STREAM nml24clog[sizeof(std::ostream)] = {};
#undef NML2_STREAM
}

namespace {

[[gnu::constructor]] void open_streams() {
  auto* const to = new (lines) Lines;
  for (std::byte* stream : {nml24cerr, nml24cout, nml24clog}) new (stream) std::ostream(to);
}

}  // namespace

NML2_EXPORT void nml2_use_output(neml2_capi::aoti::Output write) { log_line.store(write, std::memory_order_release); }

// fprintf, __fprintf_chk
NML2_EXPORT int nml2ntf(std::FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = is_printed(file) ? print_formatted(format, arguments) : std::vfprintf(file, format, arguments);
  va_end(arguments);
  return size;
}
NML2_EXPORT int nml2rintf_chk(std::FILE* file, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = is_printed(file) ? print_formatted(format, arguments) : std::vfprintf(file, format, arguments);
  va_end(arguments);
  return size;
}

// vfprintf, __vfprintf_chk
NML2_EXPORT int nml2intf(std::FILE* file, const char* format, va_list arguments) {
  return is_printed(file) ? print_formatted(format, arguments) : std::vfprintf(file, format, arguments);
}
NML2_EXPORT int nml2printf_chk(std::FILE* file, int, const char* format, va_list arguments) {
  return nml2intf(file, format, arguments);
}

// printf, __printf_chk
NML2_EXPORT int nml2tf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = print_formatted(format, arguments);
  va_end(arguments);
  return size;
}
NML2_EXPORT int nml2intf_chk(int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = print_formatted(format, arguments);
  va_end(arguments);
  return size;
}

// puts, fputs, putchar, fputc, fwrite, perror
NML2_EXPORT int nml2(const char* text) {
  print(text, std::strlen(text));
  print("\n", 1);
  return 1;
}
NML2_EXPORT int nml2s(const char* text, std::FILE* file) {
  if (!is_printed(file)) return std::fputs(text, file);
  print(text, std::strlen(text));
  return 1;
}
NML2_EXPORT int nml2har(int character) {
  const char text = static_cast<char>(character);
  print(&text, 1);
  return static_cast<unsigned char>(text);
}
NML2_EXPORT int nml2c(int character, std::FILE* file) {
  return is_printed(file) ? nml2har(character) : std::fputc(character, file);
}
NML2_EXPORT std::size_t nml2te(const void* data, std::size_t size, std::size_t count, std::FILE* file) {
  if (!is_printed(file)) return std::fwrite(data, size, count, file);
  print(static_cast<const char*>(data), size * count);
  return count;
}
NML2_EXPORT void nml2or(const char* text) {
  const char* const reason = std::strerror(errno);
  if (text && *text) {
    print(text, std::strlen(text));
    print(": ", 2);
  }
  nml2(reason);
}
