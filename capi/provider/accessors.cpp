// Functions of the AOTI ABI that tell about a handle's tensor.
#include "capi/package/scalar_type.h"
#include "capi/provider/elements.h"
#include "capi/provider/exports.h"

namespace neml2_capi::aoti::builtin {
namespace {

// Returns the axis of a number, which counts from the end where negative.
std::int64_t axis_of(const Tensor& tensor, std::int64_t axis) {
  const std::int64_t n = tensor.ndim();
  if (axis < -n || axis >= n)
    throw std::out_of_range("axis " + std::to_string(axis) + " of a tensor of " + std::to_string(n) + " axes");
  return axis < 0 ? axis + n : axis;
}

}  // namespace

NML2_EXPORT Status nml2_torch_get_data_ptr(Handle tensor, void** ret) {
  *ret = tensor->data();
  return 0;
}

NML2_EXPORT Status nml2_torch_get_dim(Handle tensor, std::int64_t* ret) {
  *ret = tensor->ndim();
  return 0;
}

NML2_EXPORT Status nml2_torch_get_numel(Handle tensor, std::int64_t* ret) {
  *ret = tensor->numel();
  return 0;
}

// Returns a pointer to non-const, as the ABI wants; packages only read.
NML2_EXPORT Status nml2_torch_get_sizes(Handle tensor, std::int64_t** ret) {
  *ret = const_cast<std::int64_t*>(tensor->sizes().data());
  return 0;
}

NML2_EXPORT Status nml2_torch_get_strides(Handle tensor, std::int64_t** ret) {
  *ret = const_cast<std::int64_t*>(tensor->strides().data());
  return 0;
}

NML2_EXPORT Status nml2_torch_get_size(Handle tensor, std::int64_t axis, std::int64_t* ret) {
  return guarded([&] { *ret = tensor->sizes()[axis_of(*tensor, axis)]; });
}

NML2_EXPORT Status nml2_torch_get_stride(Handle tensor, std::int64_t axis, std::int64_t* ret) {
  return guarded([&] { *ret = tensor->strides()[axis_of(*tensor, axis)]; });
}

NML2_EXPORT Status nml2_torch_get_dtype(Handle tensor, std::int32_t* ret) {
  *ret = scalar_type_of(tensor->dtype());
  return 0;
}

NML2_EXPORT Status nml2_torch_get_device_type(Handle /*tensor*/, std::int32_t* ret) {
  *ret = cpu;
  return 0;
}

NML2_EXPORT Status nml2_torch_get_device_index(Handle /*tensor*/, std::int32_t* ret) {
  *ret = -1;
  return 0;
}

NML2_EXPORT Status nml2_torch_get_layout(Handle /*tensor*/, std::int32_t* ret) {
  *ret = 0;
  return 0;
}

NML2_EXPORT Status nml2_torch_get_storage_offset(Handle tensor, std::int64_t* ret) {
  *ret = tensor->offset();
  return 0;
}

NML2_EXPORT Status nml2_torch_get_storage_size(Handle tensor, std::int64_t* ret) {
  *ret = tensor->storage().bytes();
  return 0;
}

NML2_EXPORT Status nml2_torch_get_storage_numel(Handle tensor, std::int64_t* ret) {
  *ret = tensor->storage().bytes() / tensor->itemsize();
  return 0;
}

NML2_EXPORT Status nml2_torch_is_contiguous(Handle tensor, bool* ret) {
  *ret = tensor->is_row_major();
  return 0;
}

NML2_EXPORT Status nml2_torch_is_defined(Handle tensor, bool* ret) {
  *ret = tensor->data() != nullptr || tensor->ndim() != 0;
  return 0;
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
