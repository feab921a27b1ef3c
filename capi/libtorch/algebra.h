// Algebra of tensors by the operators of libtorch, on any device.
#pragma once

#include "capi/graph/algebra.h"

namespace neml2_capi::aoti::libtorch {

// Must be called before tensors of the device are made. Throws Error NEML2_ERROR_UNSUPPORTED with all that libtorch
// lacks.
void require_algebra(Device device);

class TensorAlgebra final : public graph::Algebra {
 public:
  bool serves(Device) const override { return true; }
  std::shared_ptr<void> on_stream(Device device) const override;
  void use_stream(std::int16_t device_index, void* stream) const override;
  Tensor filled(DType dtype, const Dims& sizes, double value, Device device) const override;
  Tensor copied(const Tensor& tensor, DType dtype, Device device) const override;
  void assign(const Tensor& to, const Tensor& values) const override;
  Tensor apply(graph::Operation operation, const Tensor& a) const override;
  Tensor apply(graph::Operation operation, const Tensor& a, const Tensor& b) const override;
  Tensor apply(graph::Operation operation, const Tensor& a, double b) const override;
  Tensor sum(const Tensor& a, const Dims& axes, bool keep_axes) const override;
  Tensor joined(const Vector<Tensor>& parts, std::int64_t axis) const override;
  Tensor choose(const Tensor& mask, const Tensor& where_true, const Tensor& where_false) const override;
  bool any(const Tensor& mask) const override;
};

}  // namespace neml2_capi::aoti::libtorch
