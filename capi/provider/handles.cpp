// Handles of the AOTI ABI: creation, views, copies and destruction.
#include "capi/package/scalar_type.h"
#include "capi/provider/elements.h"
#include "capi/provider/exports.h"

namespace neml2_capi::aoti::builtin {
namespace {

Dims dims(const std::int64_t* values, std::int64_t n) { return Dims({values, static_cast<std::size_t>(n)}); }

void expect_cpu(std::int32_t device_type) {
  if (device_type != cpu) [[unlikely]]
    throw std::invalid_argument("a tensor on torch's device type " + std::to_string(device_type) +
                                "; the built-in provider runs on the CPU only");
}

// Makes another view of the storage of `self`, checked against its size.
Tensor view(const Tensor& self, DType dtype, const Dims& sizes, const Dims& strides, std::int64_t offset) {
  const std::int64_t elements = span_of(sizes, strides);
  if (offset < 0 || (elements > 0 && (offset + elements) * itemsize(dtype) > self.storage().bytes()))
    throw std::out_of_range("a view of sizes " + sizes.str() + " and strides " + strides.str() + " at offset " +
                            std::to_string(offset) + " exceeds its storage of " +
                            std::to_string(self.storage().bytes()) + " bytes");
  return Tensor(self.storage(), dtype, sizes, strides, offset);
}

// A run makes dozens of new tensors and views. So each has two functions: one for the usual case, with elements, and
// memory that waits, which calls nothing; and one for all other cases and all errors, which first deletes the handle
// that the other one left in *ret.

constexpr std::int32_t float32 = 6, float64 = 7;  // torch's usual scalar types

void* place_for_tensor() { return memory::take_waiting(memory::SizeClass::of(sizeof(Tensor))); }

[[gnu::noinline]] Status make_view(const Tensor& self, std::int64_t n, const std::int64_t* sizes,
                                   const std::int64_t* strides, std::int64_t further, Handle* ret) noexcept {
  delete std::exchange(*ret, nullptr);
  return guarded(
      [&] { *ret = new Tensor(view(self, self.dtype(), dims(sizes, n), dims(strides, n), self.offset() + further)); });
}

[[gnu::noinline]] Status make_empty(std::int64_t n, const std::int64_t* sizes, const std::int64_t* strides,
                                    std::int32_t dtype, std::int32_t device_type, Handle* ret) noexcept {
  delete std::exchange(*ret, nullptr);
  return guarded([&] {
    expect_cpu(device_type);
    const DType type = dtype_of(dtype);
    const Dims shape = dims(sizes, n), steps = dims(strides, n);
    *ret = new Tensor(Storage::allocate_in_run(span_of(shape, steps) * itemsize(type)), type, shape, steps);
  });
}

Tensor copy_of(const Tensor& self, const Dims& strides) {
  Tensor copy = empty_strided(self.dtype(), self.sizes(), strides);
  copy_elements(copy, self);
  return copy;
}

}  // namespace

NML2_EXPORT Status nml2_torch_new_uninitialized_tensor(Handle* ret) {
  return guarded([&] { *ret = new Tensor(); });
}

NML2_EXPORT Status nml2_torch_delete_tensor_object(Handle tensor) {
  delete tensor;
  return 0;
}

NML2_EXPORT Status nml2_torch_new_tensor_handle(Handle original, Handle* ret) {
  return guarded([&] { *ret = new Tensor(*original); });
}

NML2_EXPORT Status nml2_torch_empty_strided(std::int64_t ndim, const std::int64_t* sizes, const std::int64_t* strides,
                                            std::int32_t dtype, std::int32_t device_type, std::int32_t /*index*/,
                                            Handle* ret) {
  *ret = nullptr;
  const DType type = dtype == float64 ? DType::float64 : DType::float32;
  if (ndim >= 0 && ndim <= Dims::capacity && (dtype == float64 || dtype == float32) && device_type == cpu) [[likely]]
    if (void* const place = place_for_tensor()) [[likely]] {
      std::int64_t last = 0;
      *ret = new (place) Tensor(type, ndim, sizes, strides, last);
      if (last >= 0) [[likely]]
        (*ret)->set_storage(Storage::take_in_run((last + 1) * itemsize(type)));
      if ((*ret)->storage()) [[likely]]
        return 0;
    }
  return make_empty(ndim, sizes, strides, dtype, device_type, ret);
}

// Makes an ordinary tensor: pinned memory serves transfers to a device, and there is no device.
NML2_EXPORT Status nml2_torch_empty_strided_pinned(std::int64_t ndim, const std::int64_t* sizes,
                                                   const std::int64_t* strides, std::int32_t dtype,
                                                   std::int32_t device_type, std::int32_t index, Handle* ret) {
  return nml2_torch_empty_strided(ndim, sizes, strides, dtype, device_type, index, ret);
}

NML2_EXPORT Status nml2_torch_create_tensor_from_blob(void* data, std::int64_t ndim, const std::int64_t* sizes,
                                                      const std::int64_t* strides, std::int64_t offset,
                                                      std::int32_t dtype, std::int32_t device_type,
                                                      std::int32_t /*index*/, Handle* ret) {
  return guarded([&] {
    expect_cpu(device_type);
    const DType type = dtype_of(dtype);
    const Dims shape = dims(sizes, ndim), steps = dims(strides, ndim);
    const std::int64_t bytes = (offset + span_of(shape, steps)) * itemsize(type);
    *ret = new Tensor(Storage::wrap(data, bytes, nullptr, nullptr), type, shape, steps, offset);
  });
}

NML2_EXPORT Status nml2_torch_create_tensor_from_blob_v2(void* data, std::int64_t ndim, const std::int64_t* sizes,
                                                         const std::int64_t* strides, std::int64_t offset,
                                                         std::int32_t dtype, std::int32_t device_type,
                                                         std::int32_t index, Handle* ret, std::int32_t layout,
                                                         const std::uint8_t* /*opaque_metadata*/,
                                                         std::int64_t /*opaque_metadata_size*/) {
  if (layout == 0)
    return nml2_torch_create_tensor_from_blob(data, ndim, sizes, strides, offset, dtype, device_type, index, ret);
  return guarded([&] {
    throw std::invalid_argument("a tensor of torch's layout " + std::to_string(layout) +
                                "; the built-in provider knows strided tensors only");
  });
}

NML2_EXPORT Status nml2_torch__reinterpret_tensor(Handle self, std::int64_t ndim, const std::int64_t* sizes,
                                                  const std::int64_t* strides, std::int64_t offset_increment,
                                                  Handle* ret) {
  *ret = nullptr;
  if (ndim >= 0 && ndim <= Dims::capacity) [[likely]]
    if (void* const place = place_for_tensor()) [[likely]] {
      std::int64_t last = 0;
      const Tensor* const view = *ret = new (place) Tensor(*self, offset_increment, ndim, sizes, strides, last);
      const std::int64_t end = view->offset() + last + 1;
      if (last >= 0 && view->offset() >= 0 && end * view->itemsize() <= view->storage().bytes()) [[likely]]
        return 0;
    }
  return make_view(*self, ndim, sizes, strides, offset_increment, ret);
}

NML2_EXPORT Status nml2_torch_as_strided(Handle self, const std::int64_t* sizes, const std::int64_t* strides,
                                         Handle* ret) {
  return guarded([&] {
    const std::int64_t n = self->ndim();
    *ret = new Tensor(view(*self, self->dtype(), dims(sizes, n), dims(strides, n), self->offset()));
  });
}

NML2_EXPORT Status nml2_torch__alloc_from_pool(Handle pool, std::int64_t offset_bytes, std::int32_t dtype,
                                               std::int64_t ndim, const std::int64_t* sizes,
                                               const std::int64_t* strides, Handle* ret) {
  return guarded([&] {
    const DType type = dtype_of(dtype);
    if (offset_bytes % itemsize(type) != 0) throw std::invalid_argument("a misaligned offset into a memory pool");
    *ret = new Tensor(view(*pool, type, dims(sizes, ndim), dims(strides, ndim), offset_bytes / itemsize(type)));
  });
}

NML2_EXPORT Status nml2_torch_cpu_view_dtype(Handle self, std::int32_t dtype, Handle* ret) {
  return guarded([&] {
    const DType type = dtype_of(dtype);
    if (itemsize(type) != self->itemsize())
      throw std::invalid_argument(std::string("a view of ") + name_of(self->dtype()) + " as " + name_of(type));
    *ret = new Tensor(self->storage(), type, self->sizes(), self->strides(), self->offset());
  });
}

NML2_EXPORT Status nml2_torch_clone(Handle self, Handle* ret) {
  return guarded([&] {
    const Dims& strides = self->strides();
    const bool dense = is_dense(self->sizes(), strides);
    *ret = new Tensor(copy_of(*self, dense ? strides : elementwise_strides(self->sizes(), {&strides, 1})));
  });
}

NML2_EXPORT Status nml2_torch_clone_preserve_strides(Handle self, Handle* ret) {
  return guarded([&] {
    // A copy of the whole span keeps overlapping elements overlapping.
    const std::int64_t n = span_of(self->sizes(), self->strides());
    const Tensor span(self->storage(), self->dtype(), {n}, {1}, self->offset());
    *ret = new Tensor(span.copy().storage(), self->dtype(), self->sizes(), self->strides());
  });
}

NML2_EXPORT Status nml2_torch_assign_tensors(Handle source, Handle destination) {
  return guarded([&] { *destination = *source; });
}

NML2_EXPORT Status nml2_torch_assign_tensors_out(Handle source, Handle* ret) {
  return guarded([&] { *ret = new Tensor(*source); });
}

NML2_EXPORT Status nml2_torch_copy_(Handle self, Handle source, std::int32_t /*non_blocking*/) {
  return guarded([&] { copy_elements(*self, *source); });
}

NML2_EXPORT Status nml2_torch_tensor_copy_(Handle source, Handle destination) {
  return guarded([&] { copy_elements(*destination, *source); });
}

}  // namespace neml2_capi::aoti::builtin
