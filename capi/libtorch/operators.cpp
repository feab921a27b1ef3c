#include "capi/libtorch/operators.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "capi/base/error.h"
#include "capi/graph/singular.h"
#include "capi/libtorch/cells.h"
#include "capi/libtorch/schema.h"
#include "capi/libtorch/tensors.h"

namespace neml2_capi::aoti::libtorch {
namespace {

using Kind = Argument::Kind;

// Tensors and integers from the package, in the order of the arguments.
class Incoming {
 public:
  Incoming(std::int64_t* integers, Handle* tensors) : integers_(integers), tensors_(tensors) {}

  std::int64_t integer() { return *integers_++; }
  // Returns a copy of the handle, since the dispatcher takes its arguments over.
  Cell tensor() {
    Handle copy = nullptr;
    expect(torch().aoti_torch_new_tensor_handle(*tensors_++, &copy), "a tensor argument");
    return cell_of(copy);
  }

 private:
  std::int64_t* integers_;
  Handle* tensors_;
};

Cell tensor_list(const BoundArgument& argument, Incoming& incoming) {
  const Argument& value = argument.value;
  const bool all = value.kind == Kind::tensors;
  return list_of(all ? value.count : std::ssize(value.booleans), [&](std::int64_t i) {
    if (!all && !value.booleans[static_cast<std::size_t>(i)]) return cell_of(nullptr);
    return argument.type.optional_items ? boxed(incoming.tensor()) : incoming.tensor();
  });
}

Cell string_of(const std::string& text) {
  String string = nullptr;
  expect(torch().torch_new_string_handle(text.c_str(), text.size(), &string), "a text argument");
  return cell_of(string);
}

Cell value_of(const BoundArgument& argument, Incoming& incoming) {
  const Argument& value = argument.value;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  switch (value.kind) {
    case Kind::tensor: return incoming.tensor();
    case Kind::tensors:
    case Kind::optional_tensors: return tensor_list(argument, incoming);
    case Kind::integer: return cell_of(argument.is_default ? value.number : incoming.integer());
    case Kind::integers: return list_of(value.count, [&](std::int64_t) { return cell_of(incoming.integer()); });
    case Kind::real: return cell_of(value.real);
    case Kind::reals:
      return list_of(std::ssize(value.reals), [&](std::int64_t i) { return cell_of(value.reals[at(i)]); });
    case Kind::boolean: return value.boolean;
    case Kind::booleans:
      return list_of(std::ssize(value.booleans), [&](std::int64_t i) { return Cell{value.booleans[at(i)]}; });
    case Kind::text: return string_of(value.text);
    case Kind::scalar_type:
    case Kind::layout:
    case Kind::memory_format: return cell_of_int32(value.number);
    case Kind::device: return (Cell{value.text == "cuda"} << 32) | cell_of_int32(value.number);
    case Kind::none:
    case Kind::unknown: break;
  }
  return 0;
}

Cell argument_of(const BoundArgument& argument, Incoming& incoming) {
  if (argument.value.kind == Kind::none) return 0;
  const Cell value = value_of(argument, incoming);
  return argument.type.is_optional ? boxed(value) : value;
}

void report(Run& run, Handle handle) {
  if (run.leaves_on_device) {  // a read would wait for the device
    Handle copy = nullptr;
    expect(torch().aoti_torch_new_tensor_handle(handle, &copy), "the info of a linear solve");
    if (run.singular) run.singular->on_device.push_back(take(OwnedHandle(copy), true));
    return;
  }
  const Tensor info = borrow(handle).row_major();
  if (info.dtype() != DType::int32) throw std::runtime_error("the info of a linear solve is not int32");
  graph::report_singular(run.singular, info.data_as<const std::int32_t>(), info.numel());
}

void call(Run& run, std::size_t index, std::size_t num_integers, std::int64_t* integers, std::size_t num_tensors,
          Handle* tensors) {
  if (index >= run.calls->size())
    throw std::runtime_error(join("the package calls extern operator ", index, ", which it does not list"));
  const OperatorCall& operation = (*run.calls)[index];
  if (num_tensors != operation.num_tensors + operation.num_outputs || num_integers != operation.num_integers)
    throw std::runtime_error(join(operation.name, " was called with ", num_tensors, " tensors and ", num_integers,
                                  " integers; the package lists ", operation.num_tensors + operation.num_outputs,
                                  " and ", operation.num_integers));
  if (operation.singular == OperatorCall::Singular::of_input) return report(run, tensors[0]);

  Vector<Cell> stack(std::max(operation.arguments.size(), operation.num_outputs));
  Incoming incoming(integers, tensors);
  for (std::size_t i = 0; i < operation.arguments.size(); ++i) stack[i] = argument_of(operation.arguments[i], incoming);
  expect(torch().aoti_torch_call_dispatcher(operation.name.c_str(), operation.overload.c_str(), stack.data()),
         operation.name.c_str());
  for (std::size_t i = 0; i < operation.num_outputs; ++i) {
    const OwnedHandle made(reinterpret_cast<Handle>(stack[i]));
    expect(torch().aoti_torch_assign_tensors(made.get(), tensors[operation.num_tensors + i]), "a result");
  }
  if (operation.singular == OperatorCall::Singular::of_output) report(run, tensors[num_tensors - 1]);
}

}  // namespace

OperatorCall resolve(const OperatorNode& node) {
  const OperatorSchema schema = schema_of(node.target);
  OperatorCall operation;
  operation.name = schema.name;
  operation.overload = schema.overload;
  operation.num_outputs = node.outputs.size();
  operation.arguments =
      bind_arguments(node, schema, "the C interface of libtorch does not take. Write the model without it.");
  for (const Argument& argument : node.inputs) {
    operation.num_tensors += static_cast<std::size_t>(argument.num_tensors());
    operation.num_integers += static_cast<std::size_t>(argument.num_integers());
  }

  // The operator is a power that the compiler leaves alone; without neml2 in the process it is not registered.
  if (node.target == "neml2::opaque_pow") {
    operation.name = "aten::pow";
    operation.overload = "Tensor_Tensor";
  }
  if (node.target == "aten::_linalg_check_errors") operation.singular = OperatorCall::Singular::of_input;
  for (BoundArgument& argument : operation.arguments) {
    if (argument.value.name != "check_errors" || argument.value.kind != Kind::boolean || !argument.value.boolean)
      continue;
    argument.value.boolean = false;
    operation.singular = OperatorCall::Singular::of_output;
  }
  return operation;
}

Status call_operator(Run* run, int index, int num_integers, std::int64_t* integers, int num_tensors,
                     Handle* tensors) noexcept {
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  try {
    call(*run, size(index), size(num_integers), integers, size(num_tensors), tensors);
    return 0;
  } catch (...) {
    run->failure = std::current_exception();
  }
  return 1;
}

}  // namespace neml2_capi::aoti::libtorch
