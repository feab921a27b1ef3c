// What packages print goes to the log of libneml2_capi, a line a record: a library does not print. A name stands for one
// of the C or C++ library whose first four characters it replaces: nml24cerr for _ZSt4cerr, which is std::cerr.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

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

// Streams of libstdc++, which packages are compiled with, whatever the provider is compiled with: libc++'s are others. By
// the Itanium ABI a buffer begins with the address of its virtual functions, which are these without the first two.
constexpr std::size_t stream_size = 272, buffer_words = 8, functions = 16, xsputn = 14, overflow = 15;
constexpr std::size_t before_functions = 2;  // the offset to the top, and the type

constinit const void* table[functions] = {};
alignas(16) constinit void* buffer[buffer_words] = {};

std::ptrdiff_t put_text(void*, const char* text, std::ptrdiff_t size) noexcept {
  print(text, static_cast<std::size_t>(size));
  return size;
}

int put_character(void*, int character) noexcept {
  if (character == EOF) return 0;
  const char text = static_cast<char>(character);
  print(&text, 1);
  return static_cast<unsigned char>(text);
}

}  // namespace

extern "C" {
#define NML2_STREAM [[gnu::visibility("default")]] alignas(16) std::byte
NML2_STREAM nml24cerr[stream_size] = {};
NML2_STREAM nml24cout[stream_size] = {};
NML2_STREAM nml24clog[stream_size] = {};
#undef NML2_STREAM
}

// The streams are never destroyed: packages may print while the process ends.
NML2_EXPORT void nml2_open_streams(const neml2_capi::aoti::StreamParts& parts) {
  std::copy_n(static_cast<const void* const*>(parts.buffer_table), functions, table);
  table[xsputn] = reinterpret_cast<const void*>(put_text);
  table[overflow] = reinterpret_cast<const void*>(put_character);
  parts.make_buffer(buffer);
  buffer[0] = table + before_functions;
  for (std::byte* stream : {nml24cerr, nml24cout, nml24clog}) parts.make_stream(stream, buffer);
}

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
