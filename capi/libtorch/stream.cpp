#include "capi/libtorch/stream.h"

#include <map>
#include <utility>

#include "capi/libtorch/tensors.h"
#include "capi/platform/thread_end.h"

namespace neml2_capi::aoti::libtorch {
namespace {

using Streams = std::map<std::int16_t, void*>;

// Streams of a thread, by device.
constinit thread_local Streams* streams = nullptr;
constinit thread_local thread_end::Record at_end{};

Streams& named() {
  at_end.run = []() noexcept { delete std::exchange(streams, nullptr); };
  thread_end::call(at_end);
  if (!streams) streams = new Streams;
  return *streams;
}

}  // namespace

void use_stream(std::int16_t device_index, void* stream) {
  if (stream)
    named()[device_index] = stream;
  else
    named().erase(device_index);
}

OnStream::OnStream(Device device) {
  if (device.type != Device::Type::cuda) return;
  const CudaFunctions& cuda = Library::get().cuda();
  expect(cuda.aoti_torch_create_cuda_guard(device.index, &device_), "the choice of a CUDA device");
  try {
    if (const auto found = named().find(device.index); found != named().end())
      expect(cuda.aoti_torch_create_cuda_stream_guard(found->second, device.index, &guard_), "the choice of a stream");
    expect(cuda.aoti_torch_get_current_cuda_stream(device.index, &stream_), "the current stream");
  } catch (...) {
    if (guard_) cuda.aoti_torch_delete_cuda_stream_guard(guard_);
    cuda.aoti_torch_delete_cuda_guard(device_);
    throw;
  }
}

OnStream::~OnStream() {
  if (guard_) Library::get().cuda().aoti_torch_delete_cuda_stream_guard(guard_);
  if (device_) Library::get().cuda().aoti_torch_delete_cuda_guard(device_);
}

}  // namespace neml2_capi::aoti::libtorch
