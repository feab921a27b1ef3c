// Two functions that the published libnmhit.a, compiled with GCC 14, calls, and the libstdc++ of older compilers lacks.
// They are hidden, so that nobody else binds to them.
#include <exception>
#include <ios>

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE < 13
namespace std {
// GCC 13 moved the initialisation of cin and cout from every object file into the library, and calls this to link it.
void ios_base_library_init() { static ios_base::Init init; }
}  // namespace std
#endif

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE < 14
namespace __cxxabiv1 {
extern "C" void* __cxa_begin_catch(void*) noexcept;
// Ends the process if an exception leaves a noexcept function.
extern "C" [[noreturn]] void __cxa_call_terminate(void* exception) noexcept {
  __cxa_begin_catch(exception);
  std::terminate();
}
}  // namespace __cxxabiv1
#endif
