// The stream of a CUDA device that work is put on: torch's current one of the thread, unless the host has named one.
#pragma once

#include "capi/libtorch/library.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti::libtorch {

// The stream that this thread's work on a device is put on from now on; null: torch's current one again.
void use_stream(std::int16_t device_index, void* stream);

// While it lives, the device is the current one of this thread, and so is the stream that the host has named for it.
// Does nothing for the CPU.
class OnStream {
 public:
  explicit OnStream(Device device);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

  // cudaStream_t; null for the CPU.
  void* stream() const { return stream_; }

 private:
  CudaFunctions::Guard device_ = nullptr;
  CudaFunctions::StreamGuard guard_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace neml2_capi::aoti::libtorch
