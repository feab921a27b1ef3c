// Tensors in and out by DLPack, without a copy.
#include "capi/abi/dlpack.h"

#include <memory>

#include "capi/abi/handles.h"

namespace neml2_capi::abi {
namespace {

constexpr std::uint32_t major_version = 1;
// Codes of DLPack for the kinds of elements.
constexpr std::uint8_t integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4, boolean = 6;

struct ElementType {
  DType dtype;
  std::uint8_t code, bits;
};

constexpr ElementType element_types[] = {
    {DType::float64, floating, 64},      {DType::float32, floating, 32}, {DType::int64, integer, 64},
    {DType::int32, integer, 32},         {DType::int16, integer, 16},    {DType::int8, integer, 8},
    {DType::uint8, unsigned_integer, 8}, {DType::boolean, boolean, 8},   {DType::float16, floating, 16},
    {DType::bfloat16, bfloat, 16},
};

DType from_dlpack(const DLDataType& type) {
  for (const ElementType& element : element_types)
    if (element.code == type.code && element.bits == type.bits && type.lanes == 1) return element.dtype;
  throw Error(NEML2_ERROR_DTYPE, "managed",
              join("The DLPack element type (code ", int{type.code}, ", ", int{type.bits}, " bits, ", type.lanes,
                   " lanes) is not supported."));
}

DLDataType to_dlpack(DType dtype) {
  for (const ElementType& element : element_types)
    if (element.dtype == dtype) return {element.code, element.bits, 1};
  throw Error(NEML2_ERROR_DTYPE, "tensor", join("DLPack has no element type for ", name_of(dtype), "."));
}

// Tensor that somebody else holds through DLPack.
struct Exported {
  DLManagedTensorVersioned managed;
  Tensor tensor;
  std::int64_t shape[Dims::capacity];
  std::int64_t strides[Dims::capacity];
};

Device device_of(const DLDevice& device) {
  if (device.device_type == NEML2_DEVICE_CPU) return {};
  if (device.device_type == NEML2_DEVICE_CUDA)
    return {Device::Type::cuda, false, static_cast<std::int16_t>(device.device_id)};
  throw Error(NEML2_ERROR_UNSUPPORTED, "managed",
              join("The tensor lies on DLPack device type ", device.device_type,
                   "; expected 1, the CPU, or 2, CUDA. Copy it to one of these first."));
}

}  // namespace
}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_tensor_from_dlpack(neml2_tensor** out, DLManagedTensorVersioned* managed) {
  return guarded([&] {
    required(out, "out");
    const DLTensor& source = required(managed, "managed").dl_tensor;
    if (managed->version.major != major_version)
      throw Error(
          NEML2_ERROR_UNSUPPORTED, "managed",
          join("The tensor speaks DLPack ", managed->version.major, "; expected major version ", major_version, "."));
    const Device device = device_of(source.device);
    const Dims sizes = shape_of(source.ndim, source.shape);
    const DType dtype = from_dlpack(source.dtype);
    auto object = std::make_unique<TensorObject>();
    TensorObject& unfilled = *object;
    Owned<neml2_tensor> handle(std::move(object));  // first: nothing may fail once the deleter is ours
    const auto deleter = [](void* context) {
      auto* consumed = static_cast<DLManagedTensorVersioned*>(context);
      if (consumed->deleter) consumed->deleter(consumed);
    };
    char* data = static_cast<char*>(source.data);
    unfilled.value =
        view_of(data ? data + source.byte_offset : nullptr, dtype, sizes, source.strides, deleter, managed, device);
    *out = handle.release();
  });
}

int32_t neml2_tensor_to_dlpack(DLManagedTensorVersioned** managed, const neml2_tensor* tensor) {
  return guarded([&] {
    required(managed, "managed");
    auto exported = std::make_unique<Exported>();
    exported->tensor = value_of(tensor, "tensor");
    const Tensor& value = exported->tensor;
    std::copy(value.sizes().begin(), value.sizes().end(), exported->shape);
    std::copy(value.strides().begin(), value.strides().end(), exported->strides);
    exported->managed.version = {major_version, 0};
    exported->managed.manager_ctx = exported.get();
    exported->managed.deleter = [](DLManagedTensorVersioned* self) {
      delete static_cast<Exported*>(self->manager_ctx);
    };
    exported->managed.flags = 0;
    exported->managed.dl_tensor = {value.data(),
                                   {static_cast<std::int32_t>(value.device().type), value.device().index},
                                   static_cast<std::int32_t>(value.ndim()),
                                   to_dlpack(value.dtype()),
                                   exported->shape,
                                   exported->strides,
                                   0};
    *managed = &exported.release()->managed;
  });
}
