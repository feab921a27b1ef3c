// Tensors of ours as libtorch's handles, and back, over the same memory.
#pragma once

#include <utility>

#include "capi/aoti/libtorch/library.h"
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

// A view of the tensor's memory, which must outlive it.
OwnedHandle handle_of(const Tensor& tensor);

// A view of memory that the handle keeps alive. Throws std::runtime_error where it is not on the CPU, or of an element
// type that this library does not know.
Tensor borrow(Handle handle);

// The same, with the handle's share of the memory.
Tensor take(OwnedHandle handle);

}  // namespace neml2_capi::aoti::libtorch
