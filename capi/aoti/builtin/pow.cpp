// Powers, element by element.
#include <array>
#include <cmath>
#include <stdexcept>

#include "capi/aoti/builtin/elements.h"
#include "capi/aoti/builtin/exports.h"
#include "capi/aoti/builtin/operators.h"

namespace neml2_capi::aoti::builtin {
namespace {

bool is_real(DType dtype) { return dtype == DType::float64 || dtype == DType::float32; }

// torch's promotion: the wider type, but a tensor with axes prevails over one without.
DType promote(const Tensor& a, const Tensor& b) {
  if (!is_real(a.dtype()) || !is_real(b.dtype()))
    throw std::invalid_argument(std::string("a power of ") + name_of(a.dtype()) + " and " + name_of(b.dtype()));
  if ((a.ndim() == 0) != (b.ndim() == 0)) return a.ndim() == 0 ? b.dtype() : a.dtype();
  return a.dtype() == DType::float64 ? a.dtype() : b.dtype();
}

Tensor converted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  const Tensor out = Tensor::empty(dtype, tensor.sizes());
  copy_elements(out, tensor);
  return out;
}

Tensor power(const Tensor& base, const Tensor& exponent) {
  const DType dtype = promote(base, exponent);
  const Tensor x = converted(base, dtype), y = converted(exponent, dtype);
  const Dims sizes = broadcast(x.sizes(), y.sizes());
  const std::array<Dims, 2> operands = {broadcast_strides(base.sizes(), base.strides(), sizes),
                                        broadcast_strides(exponent.sizes(), exponent.strides(), sizes)};
  const Tensor out = empty_strided(dtype, sizes, elementwise_strides(sizes, operands));
  visit_real(dtype, "a power", [&]<class T>(std::type_identity<T>) {
    T* to = out.data_as<T>();
    const T *from = x.data_as<T>(), *by = y.data_as<T>();
    walk<3>(sizes,
            {out.strides(), broadcast_strides(x.sizes(), x.strides(), sizes),
             broadcast_strides(y.sizes(), y.strides(), sizes)},
            [&](const auto& at) { to[at[0]] = std::pow(from[at[1]], by[at[2]]); });
  });
  return out;
}

}  // namespace

void opaque_pow(RunContext&, const OperatorNode&, Tensor* const* tensors, const std::int64_t*) {
  *tensors[2] = power(*tensors[0], *tensors[1]);
}

NML2_EXPORT Status nml2_torch_cpu_pow_Tensor_Tensor(Handle base, Handle exponent, Handle* ret) {
  return guarded([&] { *ret = new Tensor(power(*base, *exponent)); });
}

}  // namespace neml2_capi::aoti::builtin
