// Operators that a user has registered, which packages call and the built-in provider lacks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/graph/operators.h"
#include "capi/package/bound_arguments.h"
#include "capi/package/operator_node.h"
#include "capi/package/operator_schema.h"
#include "capi/package/size_expression.h"

namespace neml2_capi::aoti {

// Do as the functions of the backend (graph/backend.h).
void register_operator(std::string_view schema, graph::OperatorFunction function);
void unregister_operator(std::string_view name);

// Binds a call site to the registered operator of its name. Returns false if there is none. Throws as
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
