// Algebra of tensors on a device, by the backend that serves the device. The processor waits only for any(), and for
// tensors that are moved to it.
//
// Tensors and results have any strides. The axes of two tensors broadcast.
#pragma once

#include <cstdint>
#include <memory>

#include "capi/tensor/tensor.h"

namespace neml2_capi::graph {

// Operation on one tensor or two. Those that compare, and what follows them, give masks, of element type boolean.
enum class Operation {
  add,
  subtract,
  multiply,
  divide,
  product,  // of matrices, the last two axes
  square_root,
  less,
  at_most,
  equal,
  finite,
  both,
  either,
  negated
};

// Computations of a backend on its devices.
class Algebra {
 public:
  virtual ~Algebra() = default;
  virtual bool serves(Device device) const = 0;

  // Makes the device the current one of this thread, and so the stream that the host has named for it, until the result
  // ends.
  virtual std::shared_ptr<void> on_stream(Device device) const = 0;
  // Sets the stream of this thread's runs on a device; null means the backend's own one again.
  virtual void use_stream(std::int16_t device_index, void* stream) const = 0;

  virtual Tensor filled(DType dtype, const Dims& sizes, double value, Device device) const = 0;
  // Makes a row-major copy, perhaps on another device or of another element type.
  virtual Tensor copied(const Tensor& tensor, DType dtype, Device device) const = 0;
  virtual void assign(const Tensor& to, const Tensor& values) const = 0;
  virtual Tensor apply(Operation operation, const Tensor& a) const = 0;
  virtual Tensor apply(Operation operation, const Tensor& a, const Tensor& b) const = 0;
  virtual Tensor apply(Operation operation, const Tensor& a, double b) const = 0;
  virtual Tensor sum(const Tensor& a, const Dims& axes, bool keep_axes) const = 0;
  virtual Tensor joined(const Vector<Tensor>& parts, std::int64_t axis) const = 0;
  virtual Tensor choose(const Tensor& mask, const Tensor& where_true, const Tensor& where_false) const = 0;
  virtual bool any(const Tensor& mask) const = 0;
};

// Returns the algebra of a device. Throws NEML2_ERROR_UNSUPPORTED if no backend serves it.
const Algebra& algebra_of(Device device);

// Scope in which a device is the current one of this thread, and so is the stream that the host has named for it. It
// does nothing for the CPU.
class OnStream {
 public:
  explicit OnStream(Device device)
      : scope_(device.type == Device::Type::cpu ? nullptr : algebra_of(device).on_stream(device)) {}

 private:
  std::shared_ptr<void> scope_;
};

}  // namespace neml2_capi::graph

namespace neml2_capi::algebra {

using graph::Operation;

inline const graph::Algebra& of(const Tensor& tensor) { return graph::algebra_of(tensor.device()); }

inline Tensor filled(DType dtype, const Dims& sizes, double value, Device device) {
  return graph::algebra_of(device).filled(dtype, sizes, value, device);
}
// Makes a row-major copy on another device, or of another element type.
inline Tensor moved(const Tensor& tensor, Device device) {
  return graph::algebra_of(device.is_host() ? tensor.device() : device).copied(tensor, tensor.dtype(), device);
}
inline Tensor converted(const Tensor& tensor, DType dtype) {
  return tensor.dtype() == dtype ? tensor : of(tensor).copied(tensor, dtype, tensor.device());
}
// Writes the values to a tensor of as many, on any device.
inline void assign(const Tensor& to, const Tensor& values) {
  (to.device().is_host() ? of(values) : of(to)).assign(to, values);
}

inline Tensor add(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::add, a, b); }
inline Tensor subtract(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::subtract, a, b); }
inline Tensor multiply(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::multiply, a, b); }
inline Tensor multiply(const Tensor& a, double b) { return of(a).apply(Operation::multiply, a, b); }
inline Tensor divide(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::divide, a, b); }
inline Tensor square_root(const Tensor& a) { return of(a).apply(Operation::square_root, a); }
inline Tensor product(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::product, a, b); }
inline Tensor sum(const Tensor& a, const Dims& axes, bool keep_axes) { return of(a).sum(a, axes, keep_axes); }
// Joins tensors side by side along an axis.
inline Tensor joined(const Vector<Tensor>& parts, std::int64_t axis) {
  return parts.size() == 1 ? parts.front() : of(parts.front()).joined(parts, axis);
}

inline Tensor less(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::less, a, b); }
inline Tensor less(const Tensor& a, double b) { return of(a).apply(Operation::less, a, b); }
inline Tensor at_most(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::at_most, a, b); }
inline Tensor at_most(const Tensor& a, double b) { return of(a).apply(Operation::at_most, a, b); }
inline Tensor equal(const Tensor& a, double b) { return of(a).apply(Operation::equal, a, b); }
inline Tensor finite(const Tensor& a) { return of(a).apply(Operation::finite, a); }
inline Tensor both(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::both, a, b); }
inline Tensor either(const Tensor& a, const Tensor& b) { return of(a).apply(Operation::either, a, b); }
inline Tensor negated(const Tensor& a) { return of(a).apply(Operation::negated, a); }

inline Tensor choose(const Tensor& mask, const Tensor& where_true, const Tensor& where_false) {
  return of(mask).choose(mask, where_true, where_false);
}
// A number of the processor would be moved to the device, which waits for it.
inline Tensor choose(const Tensor& mask, double where_true, const Tensor& where_false) {
  return choose(mask, filled(where_false.dtype(), {}, where_true, where_false.device()), where_false);
}
inline bool any(const Tensor& mask) { return of(mask).any(mask); }

}  // namespace neml2_capi::algebra
