// Export of a function of the AOTI ABI: its C linkage, its status and the reason of a failure.
#pragma once

#include <cstdint>
#include <exception>
#include <new>

#include "capi/provider/provider.h"
#include "capi/tensor/tensor.h"

#define NML2_EXPORT extern "C" __attribute__((visibility("default")))

namespace neml2_capi::aoti::builtin {

using Handle = Tensor*;
using Status = std::int32_t;  // 0: success, 1: failure

// Keeps the reason for nml2_last_error on this thread.
void remember_failure(const char* reason) noexcept;

// Turns exceptions into a status, which packages check: none may leave an exported function.
template <class Body>
Status guarded(Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    remember_failure(lack_of_memory);
  } catch (const std::exception& failure) {
    remember_failure(failure.what());
  } catch (...) {
    remember_failure("an unknown exception");
  }
  return 1;
}

}  // namespace neml2_capi::aoti::builtin
