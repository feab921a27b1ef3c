// Stands in for the demangler of the C++ run time that zig puts inside a library, which takes 0.1 MB of code. The run time
// asks for it before it ends a process for an exception that nobody caught: the message then has the mangled name.
#include <cstddef>

extern "C" char* __cxa_demangle(const char*, char*, std::size_t*, int* status) {
  constexpr int not_mangled = -2;
  if (status) *status = not_mangled;
  return nullptr;
}
