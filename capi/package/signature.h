// The inputs and outputs of a package, and what is known of its code.
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

// What a package was compiled for, of one input: read from the checks in its source.
struct InputSpec {
  std::string name;
  DType dtype = DType::float64;
  Dims least;     // per axis, the least and
  Dims greatest;  // the greatest size; equal where the axis is fixed
  Dims order;     // the axes from the outermost to the innermost one in memory, where elements lie side by side

  bool is_row_major() const { return std::is_sorted(order.begin(), order.end()); }
};

// The same of an output, as far as the source says it.
struct OutputSpec {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Dims> sizes;  // -1 where one depends on the inputs
};

// How arguments and results are made of tensors: torch's pytree specifications, in JSON; empty where there is none.
struct CallSpec {
  std::string in, out;
};

// One axis of one input.
struct Axis {
  std::int64_t input;
  std::int64_t axis;
};

struct Signature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  CallSpec call_spec;
  Device::Type device = Device::Type::cpu;           // of all inputs
  std::vector<std::vector<Axis>> equal_axes;         // groups of dynamic axes that always have one size
  std::map<std::string, Axis, std::less<>> symbols;  // the names of sizes in the source, and an axis that has each

  bool has_kernels = false;  // code of its own, beside what it calls
  // Kernels on integers note a division by zero through a pointer to the stack of the running thread, and one image has
  // one such pointer: they must run one at a time.
  bool has_integer_kernels = false;
};

}  // namespace neml2_capi::aoti
