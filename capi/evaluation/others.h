// Evaluation of a range except for some of its points, which have failed before.
#pragma once

#include <cstdint>
#include <functional>

#include "capi/model/model.h"
#include "capi/values/bindings.h"
#include "capi/values/tally.h"

namespace neml2_capi::model {

// A point that is not evaluated, and the factor that its increment should be multiplied by.
struct LeftOut {
  std::int64_t point;
  double cut;
};

// Copies the points of a range, except those that are left out, to arrays of their own, calls `evaluate` with these, and
// writes the results to the caller's arrays. Points that are left out, in increasing order, get the given status; their results
// stay as they were, or become NaN. Sums over points must have a row for each. The tally counts all points of the range.
Tally evaluate_others(const Model& model, const Bindings& bindings, std::int64_t begin, std::int64_t end,
                      const Vector<LeftOut>& left_out, std::int32_t status, std::int64_t miters,
                      const std::function<Tally(const Bindings&)>& evaluate);

}  // namespace neml2_capi::model
