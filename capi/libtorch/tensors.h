// Tensors of ours as libtorch's handles, and back, over the same memory.
#pragma once

#include <utility>

#include "capi/libtorch/library.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti::libtorch {

// A handle that is owned.
class OwnedHandle {
 public:
  explicit OwnedHandle(Handle handle = nullptr) : handle_(handle) {}
  OwnedHandle(OwnedHandle&& other) noexcept : handle_(other.release()) {}
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~OwnedHandle() {
    if (handle_) Library::get().functions().aoti_torch_delete_tensor_object(handle_);
  }

  Handle get() const { return handle_; }
  Handle release() { return std::exchange(handle_, nullptr); }

 private:
  Handle handle_;
};

// Throws std::runtime_error with libtorch's reason where the status is not 0.
void expect(Status status, const char* what);

// What torch's C ABI calls the type and the index of a device.
std::int32_t device_type_of(Device device);
std::int32_t device_index_of(Device device);

// A view of the tensor's memory, which must outlive it.
OwnedHandle handle_of(const Tensor& tensor);

// A view of memory that the handle keeps alive. `by_operators`: see Device. Throws std::runtime_error where it is on no
// device, or of no element type, that this library knows.
Tensor borrow(Handle handle, bool by_operators = false);

// The same, with the handle's share of the memory.
Tensor take(OwnedHandle handle, bool by_operators = false);

}  // namespace neml2_capi::aoti::libtorch
