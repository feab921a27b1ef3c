// Operators that a user has registered, which packages call and the built-in provider lacks.
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

// Call of a user's function: its arguments and its outputs.
class Invocation {
 public:
  // Argument with its run-time values: one, or those of a list. A text is in `argument`.
  struct Given {
    const BoundArgument& argument;
    Vector<Tensor> tensors;         // row-major; a missing optional one is null
    Vector<std::int64_t> integers;  // booleans, too
    Vector<double> reals;
  };

  const OperatorSchema& schema() const { return schema_; }
  const Vector<Given>& arguments() const { return arguments_; }  // in the order of the schema
  std::int64_t num_outputs() const { return std::ssize(outputs_); }

  // Takes a result over; its memory is copied unless nobody else has it. Throws NEML2_ERROR_SHAPE or _DTYPE where the
  // package was compiled for another shape or element type.
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

// Function that any number of threads may call at once. Its exception becomes the run's error.
using UserFunction = std::function<void(Invocation&)>;

// Registers an operator for the packages that are loaded from now on. Throws NEML2_ERROR_ARGUMENT for a malformed or
// unsupported schema, and for a name that is taken.
void register_operator(std::string_view schema, UserFunction function);

// Unregisters an operator by its name or schema: waits until no thread is in the function, which is never called again.
// Throws NEML2_ERROR_NAME for an unknown operator, NEML2_ERROR_ARGUMENT for a call by the function itself.
void unregister_operator(std::string_view name);

// Binds a call site to the registered operator of its name. Returns false where there is none. Throws as
// bind_arguments() does.
bool bind_registered(OperatorNode& node, const SizeExpression::Symbols& symbols);

class RegisteredOperator;

// Call site, with the operator as it was when the package was loaded.
class RegisteredCall {
 public:
  RegisteredCall(std::shared_ptr<RegisteredOperator> registered, const OperatorNode& node,
                 const SizeExpression::Symbols& symbols);

  // Runs as an Operator of the provider. Leaves the function's exception in `run`.
  static void run(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t* integers);

 private:
  friend class Invocation;
  // Result that the package's code expects, as far as its source tells.
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
