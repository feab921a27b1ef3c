// Inputs and outputs of a graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "capi/tensor/tensor.h"

namespace neml2_capi::graph {

// Specification of one input.
struct InputSpec {
  std::string name;
  DType dtype = DType::float64;
  Dims least;     // least size of each axis
  Dims greatest;  // greatest size of each axis; the least one if the axis is fixed
  Dims order;     // axes from the outermost to the innermost one in memory, where elements lie side by side

  bool is_fixed(std::int64_t axis) const { return least[axis] == greatest[axis]; }
  bool is_row_major() const { return std::is_sorted(order.begin(), order.end()); }
};

// Specification of one output, as far as it is known.
struct OutputSpec {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Dims> sizes;  // -1 if one depends on the inputs
};

// Structures that arguments and results are made of: torch's pytree specifications, in JSON; empty if there is none.
struct CallSpec {
  std::string in, out;
};

}  // namespace neml2_capi::graph
