// Functions of the AOTI ABI that tell about a handle's tensor.
#include "capi/package/scalar_type.h"
#include "capi/provider/elements.h"
#include "capi/provider/exports.h"

namespace neml2_capi::aoti::builtin {
namespace {

// Returns the axis of a number, which counts from the end if negative.
std::int64_t axis_of(const Tensor& tensor, std::int64_t axis) {
  const std::int64_t n = tensor.ndim();
  if (axis < -n || axis >= n)
    throw std::out_of_range("axis " + std::to_string(axis) + " of a tensor of " + std::to_string(n) + " axes");
  return axis < 0 ? axis + n : axis;
}

}  // namespace

// Defines a function that tells one thing about a tensor, `self`, and cannot fail. Packages only read what it returns.
#define NML2_ACCESSOR(name, Type, value)                           \
  NML2_EXPORT Status nml2_torch_##name(Handle tensor, Type* ret) { \
    [[maybe_unused]] const Tensor& self = *tensor;                 \
    *ret = value;                                                  \
    return 0;                                                      \
  }

NML2_ACCESSOR(get_data_ptr, void*, self.data())
NML2_ACCESSOR(get_dim, std::int64_t, self.ndim())
NML2_ACCESSOR(get_numel, std::int64_t, self.numel())
NML2_ACCESSOR(get_sizes, std::int64_t*, const_cast<std::int64_t*>(self.sizes().data()))
NML2_ACCESSOR(get_strides, std::int64_t*, const_cast<std::int64_t*>(self.strides().data()))
NML2_ACCESSOR(get_dtype, std::int32_t, scalar_type_of(self.dtype()))
NML2_ACCESSOR(get_device_type, std::int32_t, cpu)
NML2_ACCESSOR(get_device_index, std::int32_t, -1)
NML2_ACCESSOR(get_layout, std::int32_t, 0)
NML2_ACCESSOR(get_storage_offset, std::int64_t, self.offset())
NML2_ACCESSOR(get_storage_size, std::int64_t, self.storage().bytes())
NML2_ACCESSOR(get_storage_numel, std::int64_t, self.storage().bytes() / self.itemsize())
NML2_ACCESSOR(is_contiguous, bool, self.is_row_major())
NML2_ACCESSOR(is_defined, bool, self.data() != nullptr || self.ndim() != 0)

NML2_EXPORT Status nml2_torch_get_size(Handle tensor, std::int64_t axis, std::int64_t* ret) {
  return guarded([&] { *ret = tensor->sizes()[axis_of(*tensor, axis)]; });
}

NML2_EXPORT Status nml2_torch_get_stride(Handle tensor, std::int64_t axis, std::int64_t* ret) {
  return guarded([&] { *ret = tensor->strides()[axis_of(*tensor, axis)]; });
}

NML2_EXPORT Status nml2_torch_check_inf_and_nan(const char* name, Handle tensor) {
  return guarded([&] {
    if (tensor->dtype() != DType::float64 && tensor->dtype() != DType::float32) return;
    visit_real(tensor->dtype(), "a check", [&]<class T>(std::type_identity<T>) {
      const T* data = tensor->data_as<T>();
      walk<1>(tensor->sizes(), {tensor->strides()}, [&](const auto& at) {
        // x - x is 0, except for infinities and NaN.
        if (!(data[at[0]] - data[at[0]] == T(0))) throw std::domain_error(std::string(name) + " is not finite");
      });
    });
  });
}

}  // namespace neml2_capi::aoti::builtin
