// Scalars that have a value of the step before.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "capi/values/points.h"

namespace neml2_capi::model {

// Returns the positions of each scalar `x` and its `x~1`, such as the time: an increment is their difference.
std::vector<std::pair<std::size_t, std::size_t>> steps_of(const std::vector<Variable>& inputs);

}  // namespace neml2_capi::model
