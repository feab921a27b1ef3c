// Handles of the AOTI ABI: creation, views, copies and destruction.
#include "capi/aoti/builtin/elements.h"
#include "capi/aoti/builtin/exports.h"
#include "capi/aoti/builtin/scalar_type.h"

namespace neml2_capi::aoti::builtin {
namespace {

using Axes = std::span<const std::int64_t>;

Axes axes(const std::int64_t* values, std::int64_t n) { return {values, static_cast<std::size_t>(n)}; }
Dims dims(const std::int64_t* values, std::int64_t n) { return Dims(axes(values, n)); }

void expect_cpu(std::int32_t device_type) {
  if (device_type != cpu)
    throw std::invalid_argument("a tensor on torch's device type " + std::to_string(device_type) +
                                "; the built-in provider runs on the CPU only");
}

[[noreturn]] void refuse_view(const Tensor& self, const Dims& sizes, const Dims& strides, std::int64_t offset) {
  throw std::out_of_range("a view of sizes " + sizes.str() + " and strides " + strides.str() + " at offset " +
                          std::to_string(offset) + " exceeds its storage of " + std::to_string(self.storage().bytes()) +
                          " bytes");
}

// What a view touches; see span_of() of elements.h, which is for rarer use.
struct Span {
  std::int64_t elements;
  bool negative;  // is any size or stride
};

Span span_of(Axes sizes, Axes strides) {
  std::int64_t last = 0, signs = 0;
  bool empty = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    last += (sizes[i] - 1) * strides[i];
    signs |= sizes[i] | strides[i];
    empty |= sizes[i] == 0;
  }
  return {empty ? 0 : last + 1, signs < 0};
}

// Another view of the storage of `self`, checked against its size. Packages make dozens of them in a run.
Handle view(const Tensor& self, DType dtype, Axes sizes, Axes strides, std::int64_t offset) {
  const Span span = span_of(sizes, strides);
  if (span.negative || offset < 0 ||
      (span.elements > 0 && (offset + span.elements) * itemsize(dtype) > self.storage().bytes()))
    refuse_view(self, Dims(sizes), Dims(strides), offset);
  return new Tensor(self.storage(), dtype, sizes, strides, offset);
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
  return guarded([&] {
    expect_cpu(device_type);
    const DType type = dtype_of(dtype);
    const Span span = span_of(axes(sizes, ndim), axes(strides, ndim));
    if (span.negative) span_of(dims(sizes, ndim), dims(strides, ndim));  // which says so
    *ret = new Tensor(Storage::allocate_confined(span.elements * itemsize(type)), type, axes(sizes, ndim),
                      axes(strides, ndim));
  });
}

// Pinned memory serves transfers to a device, of which there is none.
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
  return guarded([&] {
    *ret = view(*self, self->dtype(), axes(sizes, ndim), axes(strides, ndim), self->offset() + offset_increment);
  });
}

NML2_EXPORT Status nml2_torch_as_strided(Handle self, const std::int64_t* sizes, const std::int64_t* strides,
                                         Handle* ret) {
  return guarded([&] {
    *ret = view(*self, self->dtype(), axes(sizes, self->ndim()), axes(strides, self->ndim()), self->offset());
  });
}

NML2_EXPORT Status nml2_torch__alloc_from_pool(Handle pool, std::int64_t offset_bytes, std::int32_t dtype,
                                               std::int64_t ndim, const std::int64_t* sizes,
                                               const std::int64_t* strides, Handle* ret) {
  return guarded([&] {
    const DType type = dtype_of(dtype);
    if (offset_bytes % itemsize(type) != 0) throw std::invalid_argument("a misaligned offset into a memory pool");
    *ret = view(*pool, type, axes(sizes, ndim), axes(strides, ndim), offset_bytes / itemsize(type));
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
    // The whole span is copied, so that overlapping elements still overlap.
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
