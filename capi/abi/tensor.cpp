// Tensor handles.
#include <algorithm>
#include <limits>
#include <utility>

#include "capi/abi/handles.h"
#include "capi/abi/sized.h"

namespace neml2_capi::abi {
namespace {

DType dtype_of(std::int32_t code) {
  if (!is_dtype(code))
    throw Error(NEML2_ERROR_DTYPE, "dtype",
                join("There is no element type ", code, "; see NEML2_FLOAT64 and the others."));
  return static_cast<DType>(code);
}

}  // namespace

Handles handles_of(Vector<Tensor> tensors) {
  Handles handles;
  for (Tensor& tensor : tensors) {
    tensor.storage().end_confinement();
    handles.push_back(tensor.storage().data() || tensor.numel() == 0
                          ? Owned<neml2_tensor>(std::make_unique<TensorObject>(TensorObject{std::move(tensor)}))
                          : Owned<neml2_tensor>());
  }
  return handles;
}

void hand_out(neml2_tensor** out, Handles handles) noexcept {
  for (std::size_t i = 0; i < handles.size(); ++i) out[i] = handles[i].release();
}

Dims shape_of(std::int64_t ndim, const std::int64_t* shape) {
  if (ndim < 0 || ndim > Dims::capacity)
    throw Error(NEML2_ERROR_SHAPE, "ndim", join("A tensor has 0 to ", Dims::capacity, " axes; got ", ndim, "."));
  if (ndim > 0) required(shape, "shape");
  return Dims(std::span(shape, static_cast<std::size_t>(ndim)));
}

std::int64_t count_of(const Dims& sizes) {
  // Bound for elements of 8 bytes in a memory of less than 2^60.
  constexpr std::int64_t most = std::int64_t{1} << 57;
  std::int64_t elements = 1;
  for (std::int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0)
      throw Error(NEML2_ERROR_SHAPE, "shape", join("Axis ", i, " has the size ", sizes[i], "; it must be 0 or more."));
    if (sizes[i] > 0 && elements > most / sizes[i])
      throw Error(NEML2_ERROR_SHAPE, "shape", join("No memory holds the elements of the shape ", sizes.str(), "."));
    elements *= std::max<std::int64_t>(sizes[i], 1);
  }
  return sizes.product();
}

// Refuses negative strides, which would reach before `data`.
Tensor view_of(void* data, DType dtype, const Dims& sizes, const std::int64_t* given, Storage::Deleter deleter,
               void* context, Device device) {
  std::int64_t last = 0;
  const bool empty = count_of(sizes) == 0;
  const Dims strides = given ? Dims(std::span(given, static_cast<std::size_t>(sizes.size()))) : sizes.row_major();
  for (std::int64_t i = 0; i < sizes.size(); ++i) {
    std::int64_t reach = 0;
    if (sizes[i] < 2) continue;  // the stride is never used
    if (strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > std::numeric_limits<std::int64_t>::max() / 16)
      throw Error(NEML2_ERROR_SHAPE, "strides",
                  join("Axis ", i, " has the stride ", strides[i],
                       "; it must be 0 or more, and lead to memory: copy the array if it is negative."));
  }
  if (!empty && !data)
    throw Error(NEML2_ERROR_ARGUMENT, "data", "The argument 'data' is NULL; it must point to something.");
  const std::int64_t bytes = empty ? 0 : (last + 1) * itemsize(dtype);
  return Tensor(Storage::wrap(data, bytes, deleter, context, device), dtype, sizes, strides);
}

}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_tensor_create(neml2_tensor** out, int32_t dtype, int64_t ndim, const int64_t* shape) {
  return guarded([&] {
    required(out, "out");
    const Dims sizes = shape_of(ndim, shape);
    count_of(sizes);
    *out = opened<neml2_tensor>(Tensor::zeros(dtype_of(dtype), sizes));
  });
}

int32_t neml2_tensor_wrap(neml2_tensor** out, void* data, int32_t dtype, int64_t ndim, const int64_t* shape,
                          const int64_t* strides, void (*deleter)(void*), void* context) {
  return guarded([&] {
    required(out, "out");
    auto object = std::make_unique<TensorObject>();
    TensorObject& unfilled = *object;
    Owned<neml2_tensor> handle(std::move(object));  // first: nothing may fail once the deleter is ours
    unfilled.value = view_of(data, dtype_of(dtype), shape_of(ndim, shape), strides, deleter, context);
    *out = handle.release();
  });
}

int32_t neml2_tensor_share(neml2_tensor** out, const neml2_tensor* tensor) {
  return guarded([&] {
    required(out, "out");
    *out = opened<neml2_tensor>(value_of(tensor, "tensor"));
  });
}

int32_t neml2_tensor_inspect(neml2_tensor_info* out, const neml2_tensor* tensor) {
  return shared(tensor, "tensor", [&](auto& its) {
    const Tensor& value = its.value;
    write_sized(out, {.size = 0,
                      .data = value.data(),
                      .ndim = value.ndim(),
                      .shape = value.sizes().data(),
                      .strides = value.strides().data(),
                      .dtype = static_cast<std::int32_t>(value.dtype()),
                      .device = static_cast<std::int32_t>(value.device().type),
                      .device_index = value.device().index,
                      .row_major = value.is_row_major()});
  });
}

void neml2_tensor_free(neml2_tensor** tensor) { release(tensor); }
