// Inputs and outputs of a package, and facts about its code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti {

// Specification of one input, read from the checks in the package's source.
struct InputSpec {
  std::string name;
  DType dtype = DType::float64;
  Dims least;     // least size of each axis
  Dims greatest;  // greatest size of each axis; the least one where the axis is fixed
  Dims order;     // axes from the outermost to the innermost one in memory, where elements lie side by side

  bool is_fixed(std::int64_t axis) const { return least[axis] == greatest[axis]; }
  bool is_row_major() const { return std::is_sorted(order.begin(), order.end()); }
};

// Specification of one output, as far as the source tells it.
struct OutputSpec {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Dims> sizes;  // -1 where one depends on the inputs
};

// Structures that arguments and results are made of: torch's pytree specifications, in JSON; empty where there is none.
struct CallSpec {
  std::string in, out;
};

// Axis of an input.
struct Axis {
  std::int64_t input;
  std::int64_t axis;
};

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
