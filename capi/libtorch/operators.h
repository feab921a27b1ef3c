// The extern operators of a package on libtorch: called by name, through the dispatcher's C function, so that those that
// a user's library has registered are found as torch's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/libtorch/library.h"
#include "capi/package/bound_arguments.h"
#include "capi/package/operator_node.h"

namespace neml2_capi::aoti::libtorch {

// One call site of an operator.
struct OperatorCall {
  std::string name, overload;
  std::vector<BoundArgument> arguments;
  std::size_t num_tensors = 0, num_integers = 0;  // that come at run time, without the outputs
  std::size_t num_outputs = 0;

  // A linear solve whose LAPACK info, its last output, is reported per point; a singular matrix is no failure.
  enum class Singular { no, of_output, of_input } singular = Singular::no;
};

// Throws Error NEML2_ERROR_UNSUPPORTED, naming the argument, where the dispatcher's C function cannot take it.
OperatorCall resolve(const OperatorNode& node);

// What one run of a package carries: the opaque proxy executor of the AOTI runtime.
struct Run {
  const std::vector<OperatorCall>* calls;
  SingularInfo* singular;         // or null: nobody asked
  std::string failure;            // why a call failed
  bool leaves_on_device = false;  // what linear solves tell: see SingularInfo::on_device
};

// Takes the place of aoti_torch_proxy_executor_call_function.
Status call_operator(Run* run, int index, int num_integers, std::int64_t* integers, int num_tensors,
                     Handle* tensors) noexcept;

}  // namespace neml2_capi::aoti::libtorch
