// Inputs and outputs of a package, and facts about its code.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capi/graph/signature.h"

namespace neml2_capi::aoti {

using graph::CallSpec;
using graph::InputSpec;
using graph::OutputSpec;

// Axis of an input.
struct Axis {
  std::int64_t input;
  std::int64_t axis;
};

// What the checks in a package's source, and its calls, tell.
struct Signature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  CallSpec call_spec;
  Device::Type device = Device::Type::cpu;           // that all inputs are on
  std::vector<std::vector<Axis>> equal_axes;         // groups of dynamic axes that always have one size
  std::map<std::string, Axis, std::less<>> symbols;  // names of sizes in the source, and an axis that has each

  bool has_kernels = false;  // the package has compiled code besides its calls of operators
  // True for kernels on integers, which must run one at a time: they note a division by zero through a pointer to the
  // stack of the running thread, and one image has one such pointer.
  bool has_integer_kernels = false;
};

}  // namespace neml2_capi::aoti
