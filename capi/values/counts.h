// How points ended: plain data, which code for several instruction sets reads, too.
#pragma once

#include <cstdint>

#include "capi/values/non_finite.h"

namespace neml2_capi::model {

// Statuses of a point, from NEML2_OK to NEML2_OUT_OF_BOUNDS.
inline constexpr int num_statuses = 5;

struct Counts {
  // By status: the number of points that ended with it, and the first that did.
  std::int64_t count[num_statuses] = {};
  std::int64_t first[num_statuses] = {};
  // The first point whose solve failed; -1: none.
  struct Failed {
    std::int64_t point = -1;
    std::int64_t iterations = 0;
    double residual_norm = 0.0;
  } failed;
  NonFinite non_finite;  // the first, if its reason is known
};

}  // namespace neml2_capi::model
