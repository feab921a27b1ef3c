#include "capi/libtorch/algebra.h"

#include <initializer_list>
#include <string>

#include "capi/base/error.h"
#include "capi/libtorch/cells.h"
#include "capi/package/scalar_type.h"

namespace neml2_capi::aoti::libtorch {
namespace {

Tensor empty(DType dtype, const Dims& sizes, Device device) {
  if (device.is_host()) return Tensor::empty(dtype, sizes);
  Handle handle = nullptr;
  expect(torch().aoti_torch_empty_strided(sizes.size(), sizes.data(), sizes.row_major().data(), scalar_type_of(dtype),
                                          device_type_of(device), device.index, &handle),
         "memory for a tensor");
  return take(OwnedHandle(handle), device.by_operators);
}

Tensor row_major_copy(const Tensor& tensor) { return moved(tensor, tensor.device()); }

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

Tensor call(const char* name, const Tensor& a, const Tensor& b) { return call(name, "Tensor", {&a, &b}); }

Tensor difference(const Tensor& a, const Tensor& b, double factor) {
  Handle made = nullptr;
  const OwnedHandle x = handle_of(a), y = handle_of(b);
  expect(torch().aoti_torch_aten_subtract_Tensor(x.get(), y.get(), factor, &made), "a difference");
  return take(OwnedHandle(made), a.device().by_operators);
}

Cell list_of_integers(const Dims& values) {
  return list_of(values.size(), [&](std::int64_t i) { return cell_of(values[i]); });
}

}  // namespace

void require_algebra(Device device) {
  std::string missing;
#define NML2_REQUIRE(name, ...) \
  if (!torch().name) add_name(missing, #name);
  NML2_ALGEBRA_FUNCTIONS(NML2_REQUIRE)
  if (!missing.empty())
    throw Error(NEML2_ERROR_UNSUPPORTED, "libtorch",
                join("libtorch ", Library::get().version(), " lacks functions that the device ", device.str(),
                     " needs: ", missing, ". Install a newer torch."));
  if (device.type == Device::Type::cuda) Library::get().cuda();
  copy_on_device = row_major_copy;
}

Tensor filled(DType dtype, const Dims& sizes, double value, Device device) {
  Tensor tensor = empty(dtype, sizes, device);
  const OwnedHandle handle = handle_of(tensor);
  expect(torch().aoti_torch_aten_fill__Scalar(handle.get(), value), "filling a tensor");
  return tensor;
}

void assign(const Tensor& to, const Tensor& values) {
  const OwnedHandle destination = handle_of(to), source = handle_of(values);
  expect(torch().aoti_torch_copy_(destination.get(), source.get(), 0), "copying a tensor");
}

Tensor moved(const Tensor& tensor, Device device) {
  Tensor copy = empty(tensor.dtype(), tensor.sizes(), device);
  assign(copy, tensor);
  return copy;
}

Tensor converted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor copy = empty(dtype, tensor.sizes(), tensor.device());
  assign(copy, tensor);
  return copy;
}

Tensor add(const Tensor& a, const Tensor& b) { return difference(a, b, -1.0); }
Tensor subtract(const Tensor& a, const Tensor& b) { return difference(a, b, 1.0); }
Tensor multiply(const Tensor& a, const Tensor& b) { return call("aten::mul", a, b); }
Tensor multiply(const Tensor& a, double b) { return multiply(a, number(b, a.dtype())); }
Tensor divide(const Tensor& a, const Tensor& b) { return call("aten::div", a, b); }
Tensor square_root(const Tensor& a) { return call("aten::sqrt", "", {&a}); }
Tensor product(const Tensor& a, const Tensor& b) { return call("aten::matmul", "", {&a, &b}); }

Tensor sum(const Tensor& a, const Dims& axes, bool keep_axes) {
  return call("aten::sum", "dim_IntList", {&a}, {boxed(list_of_integers(axes)), Cell{keep_axes}, 0});
}

Tensor joined(const Vector<Tensor>& parts, std::int64_t axis) {
  if (parts.size() == 1) return parts.front();
  const Cell list = list_of(std::ssize(parts), [&](std::int64_t i) {
    return cell_of(handle_of(parts[static_cast<std::size_t>(i)]).release());
  });
  Cell stack[] = {list, cell_of(axis)};
  expect(torch().aoti_torch_call_dispatcher("aten::cat", "", stack), "aten::cat");
  return take(OwnedHandle(reinterpret_cast<Handle>(stack[0])), parts.front().device().by_operators);
}

Tensor less(const Tensor& a, const Tensor& b) { return call("aten::lt", a, b); }
Tensor less(const Tensor& a, double b) { return less(a, number(b, a.dtype())); }
Tensor at_most(const Tensor& a, const Tensor& b) { return call("aten::le", a, b); }
Tensor at_most(const Tensor& a, double b) { return at_most(a, number(b, a.dtype())); }
Tensor equal(const Tensor& a, double b) { return call("aten::eq", a, number(b, a.dtype())); }
Tensor finite(const Tensor& a) { return call("aten::isfinite", "", {&a}); }
Tensor both(const Tensor& a, const Tensor& b) { return call("aten::logical_and", "", {&a, &b}); }
Tensor either(const Tensor& a, const Tensor& b) { return call("aten::logical_or", "", {&a, &b}); }
Tensor negated(const Tensor& a) { return call("aten::logical_not", "", {&a}); }

Tensor choose(const Tensor& mask, const Tensor& where_true, const Tensor& where_false) {
  return call("aten::where", "self", {&mask, &where_true, &where_false});
}

// aten::where moves a number of the processor to the device, and waits for it.
Tensor choose(const Tensor& mask, double where_true, const Tensor& where_false) {
  return choose(mask, filled(where_false.dtype(), {}, where_true, where_false.device()), where_false);
}

bool any(const Tensor& mask) {
  const Tensor found = call("aten::any", "", {&mask});
  bool result = false;
  expect(torch().aoti_torch_item_bool(handle_of(found).get(), &result), "reading a flag");
  return result;
}

}  // namespace neml2_capi::aoti::libtorch
