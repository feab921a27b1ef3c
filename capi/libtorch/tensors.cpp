#include "capi/libtorch/tensors.h"

#include <span>
#include <stdexcept>

#include "capi/base/error.h"
#include "capi/package/scalar_type.h"

namespace neml2_capi::aoti::libtorch {
namespace {

// Number of CUDA devices in torch's C ABI.
constexpr std::int32_t cuda = 1;

DType dtype_of(std::int32_t scalar_type) {
  for (const auto& [code, dtype] : scalar_types)
    if (code == scalar_type) return dtype;
  throw std::runtime_error(join("A tensor has elements of torch's scalar type ", scalar_type,
                                ", which this library does not know. Convert them in the model."));
}

void delete_handle(void* handle) {
  Library::get().functions().aoti_torch_delete_tensor_object(static_cast<Handle>(handle));
}

// Returns the number of elements from the first to the last one in memory.
std::int64_t span_of(const Dims& sizes, const Dims& strides) {
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

Device device_of(Handle handle, bool by_operators) {
  const Functions& torch = Library::get().functions();
  std::int32_t type = 0, index = 0;
  expect(torch.aoti_torch_get_device_type(handle, &type), "the device of a tensor");
  if (type == cpu) return {Device::Type::cpu, by_operators, 0};
  if (type != cuda)
    throw std::runtime_error(
        join("A tensor is on torch's device type ", type, ". Compile the model for the CPU or CUDA."));
  expect(torch.aoti_torch_get_device_index(handle, &index), "the device of a tensor");
  return {Device::Type::cuda, false, static_cast<std::int16_t>(index)};
}

Tensor wrap(Handle handle, Storage::Deleter deleter, bool by_operators) {
  const Functions& torch = Library::get().functions();
  std::int32_t scalar_type = 0;
  std::int64_t ndim = 0, *sizes = nullptr, *strides = nullptr;
  void* data = nullptr;
  const Device device = device_of(handle, by_operators);
  expect(torch.aoti_torch_get_dtype(handle, &scalar_type), "the element type of a tensor");
  expect(torch.aoti_torch_get_dim(handle, &ndim), "the axes of a tensor");
  expect(torch.aoti_torch_get_sizes(handle, &sizes), "the sizes of a tensor");
  expect(torch.aoti_torch_get_strides(handle, &strides), "the strides of a tensor");
  expect(torch.aoti_torch_get_data_ptr(handle, &data), "the data of a tensor");
  const DType dtype = dtype_of(scalar_type);
  const Dims shape(std::span<const std::int64_t>(sizes, static_cast<std::size_t>(ndim)));
  const Dims steps(std::span<const std::int64_t>(strides, static_cast<std::size_t>(ndim)));
  const std::int64_t bytes = span_of(shape, steps) * itemsize(dtype);
  return Tensor(Storage::wrap(data, bytes, deleter, handle, device), dtype, shape, steps);
}

}  // namespace

void expect(Status status, const char* what) {
  if (status == 0) return;
  const std::string reason = Library::get().reason();
  throw std::runtime_error(join("libtorch failed at ", what, reason.empty() ? "" : ": ", reason));
}

OwnedHandle handle_of(const Tensor& tensor) {
  Handle handle = nullptr;
  expect(Library::get().functions().aoti_torch_create_tensor_from_blob(
             tensor.data(), tensor.ndim(), tensor.sizes().data(), tensor.strides().data(), 0,
             scalar_type_of(tensor.dtype()), device_type_of(tensor.device()), tensor.device().index, &handle),
         "a view of a tensor");
  return OwnedHandle(handle);
}

std::int32_t device_type_of(Device device) { return device.type == Device::Type::cuda ? cuda : cpu; }

Tensor borrow(Handle handle, bool by_operators) { return wrap(handle, nullptr, by_operators); }

Tensor take(OwnedHandle handle, bool by_operators) {
  Tensor tensor = wrap(handle.get(), delete_handle, by_operators);
  handle.release();
  return tensor;
}

}  // namespace neml2_capi::aoti::libtorch
