// What is not finite at a point: plain data, which code for several instruction sets reads, too.
#pragma once

#include <cstdint>

namespace neml2_capi::model {

// What an array is to an evaluation: given by the caller, or a result, in the order in which a reason is looked for.
enum class Part : std::int32_t {
  input,
  parameter,
  tangent,
  cotangent,
  output,
  block,
  parameter_block,
  jvp,
  adjoint,
  parameter_adjoint
};

// An array by its part, and its position among the variables or the derivatives.
struct Named {
  Part part = Part::input;
  std::int64_t index = 0;
};

// The first point at which something is NaN or infinite, and what it is; no point: -1.
struct NonFinite {
  std::int64_t point = -1;
  Named named = {};
};

}  // namespace neml2_capi::model
