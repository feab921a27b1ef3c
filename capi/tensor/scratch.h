// Scratch memory of a kernel, on the stack if it is small.
#pragma once

#include "capi/tensor/tensor.h"

namespace neml2_capi {

class Scratch {
 public:
  explicit Scratch(std::int64_t bytes) {
    if (bytes > static_cast<std::int64_t>(sizeof local_)) large_ = Storage::allocate(bytes);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  T* as() noexcept {
    return static_cast<T*>(large_.data() ? large_.data() : local_);
  }

 private:
  alignas(64) char local_[4096];  // two of them are in use at once, by threads of 64 kB
  Storage large_;
};

}  // namespace neml2_capi
