// Stream of a CUDA device that runs use: torch's current one of the thread, unless the host has named one.
#pragma once

#include "capi/libtorch/library.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti::libtorch {

// Sets the stream of this thread's runs on a device; null means torch's current one again.
void use_stream(std::int16_t device_index, void* stream);

// Scope in which the device is the current one of this thread, and so is the stream that the host has named for it. It
// does nothing for the CPU.
class OnStream {
 public:
  explicit OnStream(Device device);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

  // Returns the cudaStream_t, or null for the CPU.
  void* stream() const { return stream_; }

 private:
  CudaFunctions::Guard device_ = nullptr;
  CudaFunctions::StreamGuard guard_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace neml2_capi::aoti::libtorch
