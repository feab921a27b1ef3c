// Derivative that a model was compiled for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/values/points.h"

namespace neml2_capi::model {

// Derivative of an output with respect to an input or a parameter, all by their positions at the boundary.
struct Derivative {
  std::size_t output = 0, input = 0;
  bool batched = true;  // else the same for all points
  Variable block;       // its array
  // The block of a point is (sites, rows, columns).
  std::int64_t rows = 1, columns = 1;
};

}  // namespace neml2_capi::model
