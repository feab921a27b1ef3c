// Operators that a user has registered: what packages call and the built-in provider does not have.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/package/bound_arguments.h"
#include "capi/package/operator_node.h"
#include "capi/package/operator_schema.h"
#include "capi/package/size_expression.h"

namespace neml2_capi::aoti {

// One call of a user's function: what it is given, and what it makes.
class Invocation {
 public:
  // An argument, in the order of the schema: one value, or those of a list. A text is in the slot.
  struct Given {
    const BoundArgument& argument;
    Vector<Tensor> tensors;         // row-major; one that is not there is null
    Vector<std::int64_t> integers;  // booleans, too
    Vector<double> reals;
  };

  const OperatorSchema& schema() const { return schema_; }
  const Vector<Given>& arguments() const { return arguments_; }
  std::int64_t num_outputs() const { return std::ssize(outputs_); }

  // Take a result over; its memory is copied unless nobody else has it. Throws NEML2_ERROR_SHAPE or _DTYPE where the
  // package was compiled for another one.
  void set_output(std::int64_t i, Tensor&& value);

 private:
  friend class RegisteredCall;
  Invocation(const RegisteredCall& call, const std::int64_t* sizes, Tensor* const* tensors,
             const std::int64_t* integers);

  const RegisteredCall& call_;
  const OperatorSchema& schema_;
  const std::int64_t* sizes_;
  Vector<Given> arguments_;
  Vector<std::optional<Tensor>> outputs_;
};

// May be called on any number of threads at once. Throws what the run fails with.
using UserFunction = std::function<void(Invocation&)>;

// Register an operator for the packages that are loaded from now on. Throws NEML2_ERROR_ARGUMENT where the schema is
// none, is of a kind that cannot be, or its name is taken.
void register_operator(std::string_view schema, UserFunction function);

// By the name or the schema: wait until no thread is in the function, and never call it again. Throws NEML2_ERROR_NAME
// where there is none, NEML2_ERROR_ARGUMENT when it is called by the function itself.
void unregister_operator(std::string_view name);

// Bind the call sites of a package that call registered operators: to fail when an argument does not fit the schema, as
// bind_arguments() does. False where no operator of this name is registered.
bool bind_registered(OperatorNode& node, const SizeExpression::Symbols& symbols);

class RegisteredOperator;

// A call site, and the operator as it was when the package was loaded.
class RegisteredCall {
 public:
  RegisteredCall(std::shared_ptr<RegisteredOperator> registered, const OperatorNode& node,
                 const SizeExpression::Symbols& symbols);

  // An Operator of the provider. What the function threw is left in `run`.
  static void run(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t* integers);

 private:
  friend class Invocation;
  // What the package's code takes a result for, as far as its source tells.
  struct Expected {
    std::optional<DType> dtype;
    std::vector<SizeExpression> sizes, strides;
    bool has_layout = false;
  };
  void check(std::int64_t i, const Tensor& value, const std::int64_t* sizes) const;
  bool give_zeros(const std::int64_t* sizes, Tensor* const* outputs) const;
  Tensor laid_out(std::int64_t i, Tensor&& value, const std::int64_t* sizes) const;
  const std::string& name() const;

  std::shared_ptr<RegisteredOperator> operator_;
  std::vector<BoundArgument> arguments_;
  std::vector<Expected> expected_;
};

}  // namespace neml2_capi::aoti
