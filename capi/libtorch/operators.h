// The extern operators of a package on libtorch: called by name, through the dispatcher's C function, so that those
// that a user's library has registered are found as torch's own.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "capi/libtorch/library.h"
#include "capi/package/bound_arguments.h"
#include "capi/package/operator_node.h"

namespace neml2_capi::aoti::libtorch {

// Call site of an operator.
struct OperatorCall {
  std::string name, overload;
  std::vector<BoundArgument> arguments;
  std::size_t num_tensors = 0, num_integers = 0;  // of the inputs at run time
  std::size_t num_outputs = 0;

  // Place of LAPACK's info of a linear solve, which is reported per point; a singular matrix is no failure.
  enum class Singular { no, of_output, of_input } singular = Singular::no;
};

// Throws Error NEML2_ERROR_UNSUPPORTED for an argument that the dispatcher's C function does not take.
OperatorCall resolve(const OperatorNode& node);

// Context that one run of a package carries: the opaque proxy executor of the AOTI runtime.
struct Run {
  const std::vector<OperatorCall>* calls;
  SingularInfo* singular;         // null if the caller did not ask
  std::exception_ptr failure;     // of a failed call
  bool leaves_on_device = false;  // leave the info of linear solves there: see SingularInfo::on_device
};

// Takes the place of aoti_torch_proxy_executor_call_function.
Status call_operator(Run* run, int index, int num_integers, std::int64_t* integers, int num_tensors,
                     Handle* tensors) noexcept;

}  // namespace neml2_capi::aoti::libtorch
