// Operators that are functions of the host.
#include <memory>
#include <vector>

#include "capi/abi/handles.h"
#include "capi/abi/sized.h"
#include "capi/graph/backend.h"

using namespace neml2_capi;
using namespace neml2_capi::abi;
using graph::Backend;
using graph::offered;
using graph::OperatorCall;
using Given = OperatorCall::Argument;

namespace neml2_capi::abi {

// Call that a function of the host is given, for as long as it runs.
struct OperatorCallObject {
  explicit OperatorCallObject(graph::OperatorCall& call) : value(call) {
    for (const OperatorCall::Argument& given : value.arguments()) {
      owners.push_back(handles_of(given.tensors));
      pointers.emplace_back();
      for (const auto& handle : owners.back()) pointers.back().push_back(handle.get());
    }
  }

  OperatorCall& value;
  std::vector<abi::Handles> owners;  // of the tensors of each argument
  std::vector<std::vector<neml2_tensor*>> pointers;
};

}  // namespace neml2_capi::abi

namespace {

// Handle of a call, which ends with it. A thread that the function has started, and that still asks, is waited for.
class WhileCalled {
 public:
  explicit WhileCalled(OperatorCallObject& call) : token_(table::open(HandleKind::operator_call, &call)) {}
  ~WhileCalled() { table::close_when_idle(token_, HandleKind::operator_call); }
  WhileCalled(const WhileCalled&) = delete;
  WhileCalled& operator=(const WhileCalled&) = delete;

  neml2_operator_call* get() const { return reinterpret_cast<neml2_operator_call*>(token_); }

 private:
  table::Token token_;
};

const char* name_of_kind(std::int32_t kind) {
  constexpr const char* names[] = {"None", "a tensor", "an integer", "a real number", "a boolean", "a text"};
  return names[kind];
}

const Given& given(const OperatorCallObject& call, std::int64_t index) {
  return entry_of(call.value.arguments(), index, call.value.name(), "arguments");
}

// Throws NEML2_ERROR_DTYPE unless the argument is of this kind, or None, which is false.
bool is_given(const OperatorCallObject& call, std::int64_t index, std::int32_t wanted, std::int32_t other = 0) {
  const Given& argument = given(call, index);
  const std::int32_t kind = argument.kind;
  if (kind == NEML2_ARGUMENT_NONE) return false;
  if (kind == wanted || kind == other) return true;
  throw Error(NEML2_ERROR_DTYPE, argument.name,
              join("The argument ", argument.name, " of the operator ", call.value.name(), " is ", name_of_kind(kind),
                   ", and was read as ", name_of_kind(wanted), "."));
}

// Returns the values, never null for a list that is there, also an empty one.
template <class Value>
const Value* first(const Vector<Value>& values) {
  static const Value nothing{};
  return values.empty() ? &nothing : values.data();
}

void call_function(neml2_operator_fn function, void* context, OperatorCall& invocation) {
  OperatorCallObject call(invocation);
  const WhileCalled handle(call);
  const std::int64_t errors = errors_recorded();
  std::int32_t status = NEML2_OK;
  {
    const DefaultFloatingPoint environment;  // which the function may change
    status = function(context, handle.get());
  }
  if (status == NEML2_OK) return;
  const std::string& name = invocation.name();
  const bool is_known =
      status == NEML2_NOT_CONVERGED || status == NEML2_SINGULAR || (status < 0 && status >= NEML2_ERROR_INTERNAL);
  if (!is_known)
    throw Error(NEML2_ERROR_RUNTIME, name,
                join("The operator ", name, " returned ", status,
                     ", which is no status for it. Return NEML2_OK, NEML2_NOT_CONVERGED, NEML2_SINGULAR or one of "
                     "NEML2_ERROR_*."));
  const bool is_told = errors_recorded() != errors && neml2_error_status() == status;
  throw Error(status, name, join("The operator ", name, " failed: ", is_told ? last_message() : "it did not say why"),
              is_told ? neml2_error_cause() : NEML2_CAUSE_NONE);
}

}  // namespace

int32_t neml2_operator_register(const char* schema, neml2_operator_fn function, void* context) {
  return guarded([&] {
    required(schema, "schema");
    required(function, "function");
    offered(&Backend::register_operator, "call functions of the host")(
        schema, [function, context](OperatorCall& call) { call_function(function, context, call); });
  });
}

int32_t neml2_operator_unregister(const char* name) {
  return guarded([&] {
    required(name, "name");
    offered(&Backend::unregister_operator, "call functions of the host")(name);
  });
}

int32_t neml2_operator_call_count(int64_t* out, const neml2_operator_call* call, int32_t kind) {
  return alone(call, "call", [&](auto& its) {
    const OperatorCall& value = its.value;
    required(out, "out") = is_input(kind, "An operator") ? std::ssize(value.arguments()) : value.num_outputs();
  });
}

int32_t neml2_operator_call_find(int64_t* out, const neml2_operator_call* call, const char* name) {
  return guarded([&] {
    required(out, "out");
    const std::string_view wanted = &required(name, "name");
    const Alone own(call, "call");
    const OperatorCall& value = own->value;
    std::string names;
    for (std::int64_t i = 0; i < std::ssize(value.arguments()); ++i) {
      const std::string_view known = value.arguments()[static_cast<std::size_t>(i)].name;
      add_name(names, known);
      if (known != wanted) continue;
      *out = i;
      return;
    }
    throw Error(NEML2_ERROR_NAME, name,
                join("The operator ", value.name(), " has no argument '", name, "'. Its arguments are: ", names, "."));
  });
}

int32_t neml2_operator_call_inspect(neml2_argument_info* out, const neml2_operator_call* call, int64_t index) {
  return alone(call, "call", [&](auto& its) {
    const Given& argument = given(its, index);
    write_sized(out, {.size = 0, .name = argument.name, .count = argument.count, .kind = argument.kind, .reserved = 0});
  });
}

int32_t neml2_operator_call_get_tensors(neml2_tensor* const** out, const neml2_operator_call* call, int64_t index) {
  return guarded([&] {
    required(out, "out");
    static neml2_tensor* const nothing = nullptr;
    const Alone own(call, "call");
    const bool is_there = is_given(*own, index, NEML2_ARGUMENT_TENSOR);
    const auto& handles = own->pointers[static_cast<std::size_t>(index)];
    *out = !is_there ? nullptr : handles.empty() ? &nothing : handles.data();
  });
}

int32_t neml2_operator_call_get_integers(const int64_t** out, const neml2_operator_call* call, int64_t index) {
  return alone(call, "call", [&](auto& its) {
    required(out, "out");
    const bool is_there = is_given(its, index, NEML2_ARGUMENT_INTEGER, NEML2_ARGUMENT_BOOLEAN);
    *out = is_there ? first(given(its, index).integers) : nullptr;
  });
}

int32_t neml2_operator_call_get_reals(const double** out, const neml2_operator_call* call, int64_t index) {
  return alone(call, "call", [&](auto& its) {
    required(out, "out");
    *out = is_given(its, index, NEML2_ARGUMENT_REAL) ? first(given(its, index).reals) : nullptr;
  });
}

int32_t neml2_operator_call_get_text(const char** out, const neml2_operator_call* call, int64_t index) {
  return alone(call, "call", [&](auto& its) {
    required(out, "out");
    *out = is_given(its, index, NEML2_ARGUMENT_TEXT) ? given(its, index).text : nullptr;
  });
}

int32_t neml2_operator_call_set_output(neml2_operator_call* call, int64_t index, neml2_tensor** tensor) {
  return alone(call, "call", [&](auto& its) {
    const Alone result(required(tensor, "tensor"), "tensor");
    Tensor value = std::move(result->value);
    close(std::exchange(*tensor, nullptr));
    its.value.set_output(index, std::move(value));
  });
}
