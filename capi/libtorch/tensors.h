// Conversion of tensors to libtorch's handles and back, over the same memory.
#pragma once

#include <utility>

#include "capi/libtorch/library.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti::libtorch {

// Owner of a handle.
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

// Throws std::runtime_error with libtorch's reason if the status is not 0.
void expect(Status status, const char* what);

// Returns torch's number of a device's type in its C ABI.
std::int32_t device_type_of(Device device);

// Returns a view of the tensor's memory, which must outlive it.
OwnedHandle handle_of(const Tensor& tensor);

// Returns a view of memory that the handle keeps alive. `by_operators`: see Device. Throws std::runtime_error for a
// device or element type that this library does not know.
Tensor borrow(Handle handle, bool by_operators = false);

// Returns a tensor that takes over the handle, and its share of the memory.
Tensor take(OwnedHandle handle, bool by_operators = false);

}  // namespace neml2_capi::aoti::libtorch
