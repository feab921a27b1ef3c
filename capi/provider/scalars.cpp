// Single values in and out of tensors, and tensors filled with one value.
#include "capi/provider/elements.h"
#include "capi/provider/exports.h"

namespace neml2_capi::aoti::builtin {
namespace {

template <class T>
Status item(const Tensor& tensor, T* ret) {
  return guarded([&] {
    if (tensor.numel() != 1)
      throw std::invalid_argument("one value expected, of a tensor of sizes " + tensor.sizes().str());
    *ret = visit(tensor.dtype(),
                 [&]<class From>(std::type_identity<From>) { return static_cast<T>(*tensor.data_as<From>()); });
  });
}

template <class T>
Status scalar_to_tensor(T value, DType dtype, Handle* ret) {
  return guarded([&] {
    Tensor tensor = Tensor::empty(dtype, {});
    *tensor.data_as<T>() = value;
    *ret = new Tensor(std::move(tensor));
  });
}

void fill(const Tensor& tensor, double value) {
  visit(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    T* data = tensor.data_as<T>();
    walk<1>(tensor.sizes(), {tensor.strides()}, [&](const auto& at) { data[at[0]] = static_cast<T>(value); });
  });
}

}  // namespace

#define NML2_SCALARS(SCALAR)  \
  SCALAR(float64, double)     \
  SCALAR(float32, float)      \
  SCALAR(int64, std::int64_t) \
  SCALAR(int32, std::int32_t) \
  SCALAR(int16, std::int16_t) \
  SCALAR(int8, std::int8_t)   \
  SCALAR(uint8, std::uint8_t)

#define NML2_ITEM(name, T) \
  NML2_EXPORT Status nml2_torch_item_##name(Handle tensor, T* ret) { return item(*tensor, ret); }
NML2_SCALARS(NML2_ITEM)
NML2_ITEM(bool, bool)

#define NML2_SCALAR_TO_TENSOR(name, T)                                          \
  NML2_EXPORT Status nml2_torch_scalar_to_tensor_##name(T value, Handle* ret) { \
    return scalar_to_tensor(value, DType::name, ret);                           \
  }
NML2_SCALARS(NML2_SCALAR_TO_TENSOR)
NML2_EXPORT Status nml2_torch_scalar_to_tensor_bool(bool value, Handle* ret) {
  return scalar_to_tensor(value, DType::boolean, ret);
}

NML2_EXPORT Status nml2_torch_zero_(Handle self) {
  return guarded([&] { fill(*self, 0); });
}

NML2_EXPORT Status nml2_torch_cpu_fill__Scalar(Handle self, double value) {
  return guarded([&] { fill(*self, value); });
}

NML2_EXPORT Status nml2_torch_aten_fill__Scalar(Handle self, double value) {
  return guarded([&] { fill(*self, value); });
}

}  // namespace neml2_capi::aoti::builtin
