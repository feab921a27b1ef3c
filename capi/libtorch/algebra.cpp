#include "capi/libtorch/algebra.h"

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "capi/base/error.h"
#include "capi/libtorch/cells.h"
#include "capi/libtorch/stream.h"
#include "capi/package/scalar_type.h"

namespace neml2_capi::aoti::libtorch {
namespace {

using graph::Operation;

Tensor empty(DType dtype, const Dims& sizes, Device device) {
  if (device.is_host()) return Tensor::empty(dtype, sizes);
  Handle handle = nullptr;
  expect(torch().aoti_torch_empty_strided(sizes.size(), sizes.data(), sizes.row_major().data(), scalar_type_of(dtype),
                                          device_type_of(device), device.index, &handle),
         "memory for a tensor");
  return take(OwnedHandle(handle), device.by_operators);
}

// Makes a number to go with tensors of a device: an operator takes it from the processor's memory, without a transfer.
Tensor number(double value, DType dtype) {
  Tensor scalar = Tensor::empty(dtype, {});
  if (dtype == DType::float32)
    *scalar.data_as<float>() = static_cast<float>(value);
  else if (dtype == DType::float64)
    *scalar.data_as<double>() = value;
  else
    *scalar.data_as<std::int32_t>() = static_cast<std::int32_t>(value);
  return scalar;
}

// Calls an operator, whose tensors come first. The dispatcher takes over the handles and the lists.
Tensor call(const char* name, const char* overload, std::initializer_list<const Tensor*> tensors,
            std::initializer_list<Cell> others = {}) {
  Vector<OwnedHandle> handles;
  for (const Tensor* tensor : tensors) handles.push_back(handle_of(*tensor));
  Vector<Cell> stack;
  for (OwnedHandle& handle : handles) stack.push_back(cell_of(handle.release()));
  stack.insert(stack.end(), others);
  expect(torch().aoti_torch_call_dispatcher(name, overload, stack.data()), name);
  return take(OwnedHandle(reinterpret_cast<Handle>(stack.front())), (*tensors.begin())->device().by_operators);
}

// Name of an operation in torch, and the overload that takes the second tensor.
struct Named {
  const char *name, *overload;
};

Named name_of(Operation operation) {
  switch (operation) {
    case Operation::add:
    case Operation::subtract: break;  // C functions of their own
    case Operation::multiply: return {"aten::mul", "Tensor"};
    case Operation::divide: return {"aten::div", "Tensor"};
    case Operation::product: return {"aten::matmul", ""};
    case Operation::square_root: return {"aten::sqrt", ""};
    case Operation::less: return {"aten::lt", "Tensor"};
    case Operation::at_most: return {"aten::le", "Tensor"};
    case Operation::equal: return {"aten::eq", "Tensor"};
    case Operation::finite: return {"aten::isfinite", ""};
    case Operation::both: return {"aten::logical_and", ""};
    case Operation::either: return {"aten::logical_or", ""};
    case Operation::negated: return {"aten::logical_not", ""};
  }
  throw std::logic_error("an operation without an operator");
}

Tensor difference(const Tensor& a, const Tensor& b, double factor) {
  Handle made = nullptr;
  const OwnedHandle x = handle_of(a), y = handle_of(b);
  expect(torch().aoti_torch_aten_subtract_Tensor(x.get(), y.get(), factor, &made), "a difference");
  return take(OwnedHandle(made), a.device().by_operators);
}

void copy_into(const Tensor& to, const Tensor& values) {
  const OwnedHandle destination = handle_of(to), source = handle_of(values);
  expect(torch().aoti_torch_copy_(destination.get(), source.get(), 0), "copying a tensor");
}

Tensor copy_of(const Tensor& tensor, DType dtype, Device device) {
  Tensor copy = empty(dtype, tensor.sizes(), device);
  copy_into(copy, tensor);
  return copy;
}

Tensor row_major_copy(const Tensor& tensor) { return copy_of(tensor, tensor.dtype(), tensor.device()); }

Cell list_of_integers(const Dims& values) {
  return list_of(values.size(), [&](std::int64_t i) { return cell_of(values[i]); });
}

}  // namespace

void require_algebra(Device device) {
  std::string missing;
#define NML2_NAME_IF_MISSING(name, ...) \
  if (!torch().name) add_name(missing, #name);
  NML2_ALGEBRA_FUNCTIONS(NML2_NAME_IF_MISSING)
  if (!missing.empty())
    throw Error(NEML2_ERROR_UNSUPPORTED, "libtorch",
                join("libtorch ", Library::get().version(), " lacks functions that the device ", device.str(),
                     " needs: ", missing, ". Install a newer torch."));
  if (device.type == Device::Type::cuda) Library::get().cuda();
  copy_on_device = row_major_copy;
}

std::shared_ptr<void> TensorAlgebra::on_stream(Device device) const { return std::make_shared<OnStream>(device); }

void TensorAlgebra::use_stream(std::int16_t device_index, void* stream) const {
  libtorch::use_stream(device_index, stream);
}

Tensor TensorAlgebra::filled(DType dtype, const Dims& sizes, double value, Device device) const {
  Tensor tensor = empty(dtype, sizes, device);
  const OwnedHandle handle = handle_of(tensor);
  expect(torch().aoti_torch_aten_fill__Scalar(handle.get(), value), "filling a tensor");
  return tensor;
}

Tensor TensorAlgebra::copied(const Tensor& tensor, DType dtype, Device device) const {
  return copy_of(tensor, dtype, device);
}

void TensorAlgebra::assign(const Tensor& to, const Tensor& values) const { copy_into(to, values); }

Tensor TensorAlgebra::apply(Operation operation, const Tensor& a) const {
  return call(name_of(operation).name, "", {&a});
}

Tensor TensorAlgebra::apply(Operation operation, const Tensor& a, const Tensor& b) const {
  if (operation == Operation::add) return difference(a, b, -1.0);
  if (operation == Operation::subtract) return difference(a, b, 1.0);
  const Named known = name_of(operation);
  return call(known.name, known.overload, {&a, &b});
}

Tensor TensorAlgebra::apply(Operation operation, const Tensor& a, double b) const {
  return apply(operation, a, number(b, a.dtype()));
}

Tensor TensorAlgebra::sum(const Tensor& a, const Dims& axes, bool keep_axes) const {
  return call("aten::sum", "dim_IntList", {&a}, {boxed(list_of_integers(axes)), Cell{keep_axes}, 0});
}

Tensor TensorAlgebra::joined(const Vector<Tensor>& parts, std::int64_t axis) const {
  const Cell list = list_of(std::ssize(parts), [&](std::int64_t i) {
    return cell_of(handle_of(parts[static_cast<std::size_t>(i)]).release());
  });
  Cell stack[] = {list, cell_of(axis)};
  expect(torch().aoti_torch_call_dispatcher("aten::cat", "", stack), "aten::cat");
  return take(OwnedHandle(reinterpret_cast<Handle>(stack[0])), parts.front().device().by_operators);
}

Tensor TensorAlgebra::choose(const Tensor& mask, const Tensor& where_true, const Tensor& where_false) const {
  return call("aten::where", "self", {&mask, &where_true, &where_false});
}

bool TensorAlgebra::any(const Tensor& mask) const {
  const Tensor found = call("aten::any", "", {&mask});
  bool result = false;
  expect(torch().aoti_torch_item_bool(handle_of(found).get(), &result), "reading a flag");
  return result;
}

}  // namespace neml2_capi::aoti::libtorch
