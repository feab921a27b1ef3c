// State of a thread that the AOTI ABI knows: the last failure, grad mode, checks and profiling marks.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "capi/provider/exports.h"

namespace neml2_capi::aoti::builtin {
namespace {

// Without a destructor, for which the C library would need memory: the words of a thread that ends before anybody asks
// stay. `reported` are those that the last caller has.
constinit thread_local char *failure = nullptr, *reported = nullptr;
constinit thread_local bool lacked_memory = false;
constinit thread_local bool grad_mode = false;

}  // namespace

void remember_failure(const char* reason) noexcept {
  char* const words = reason == lack_of_memory ? nullptr : strdup(reason);
  std::free(std::exchange(failure, words));
  lacked_memory = !words;
}

NML2_EXPORT const char* nml2_last_error() {
  std::free(std::exchange(reported, std::exchange(failure, nullptr)));
  if (std::exchange(lacked_memory, false)) return lack_of_memory;
  return reported ? reported : "";
}

NML2_EXPORT bool nml2_torch_grad_mode_is_enabled() { return grad_mode; }

NML2_EXPORT void nml2_torch_grad_mode_set_enabled(bool enabled) { grad_mode = enabled; }

// Throws, as the only function, if the condition is false: it has no status, and kernels rely on not coming back.
// The package catches the exception at its own boundary.
NML2_EXPORT void nml2_torch_check(bool condition, const char* /*function*/, const char* /*file*/,
                                  std::uint32_t /*line*/, const char* message) {
  if (condition) return;
  remember_failure(message);
  throw std::runtime_error(message);
}

// Drops the message: a library does not print, and a warning is no failure.
NML2_EXPORT void nml2_torch_warn(const char* /*function*/, const char* /*file*/, std::uint32_t /*line*/,
                                 const char* /*message*/) {}

// Does nothing, since there is no profiler.
NML2_EXPORT Status nml2_record_function_start(const char* /*name*/, void* /*kwargs*/, void* const* /*inputs*/,
                                              std::uint64_t /*n*/, void** guard) {
  *guard = nullptr;
  return 0;
}

NML2_EXPORT Status nml2_record_function_end(void* /*guard*/) { return 0; }

}  // namespace neml2_capi::aoti::builtin
