// Algebra of tensors by the operators of libtorch, on any device. The processor waits only for any(), and for tensors
// that are moved to it.
//
// Tensors and results have any strides. The axes of two tensors broadcast.
#pragma once

#include <cstdint>

#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti::libtorch {

// Must be called before tensors of the device are made. Throws Error NEML2_ERROR_UNSUPPORTED with all that libtorch
// lacks.
void require_algebra(Device device);

Tensor filled(DType dtype, const Dims& sizes, double value, Device device);
// Makes a row-major copy on another device, or of another element type.
Tensor moved(const Tensor& tensor, Device device);
Tensor converted(const Tensor& tensor, DType dtype);
// Writes the values to a tensor of as many, on any device.
void assign(const Tensor& to, const Tensor& values);

Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, double b);
Tensor divide(const Tensor& a, const Tensor& b);
Tensor square_root(const Tensor& a);
Tensor product(const Tensor& a, const Tensor& b);  // of matrices, the last two axes
Tensor sum(const Tensor& a, const Dims& axes, bool keep_axes);
// Joins tensors side by side along an axis.
Tensor joined(const Vector<Tensor>& parts, std::int64_t axis);

// Masks, of element type boolean.
Tensor less(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, double b);
Tensor at_most(const Tensor& a, const Tensor& b);
Tensor at_most(const Tensor& a, double b);
Tensor equal(const Tensor& a, double b);
Tensor finite(const Tensor& a);
Tensor both(const Tensor& a, const Tensor& b);
Tensor either(const Tensor& a, const Tensor& b);
Tensor negated(const Tensor& a);
Tensor choose(const Tensor& mask, const Tensor& where_true, const Tensor& where_false);
Tensor choose(const Tensor& mask, double where_true, const Tensor& where_false);
bool any(const Tensor& mask);

}  // namespace neml2_capi::aoti::libtorch
