// Evaluation of a range except for some of its points, which have failed before.
#pragma once

#include <cstdint>
#include <functional>

#include "capi/model/model.h"
#include "capi/values/bindings.h"
#include "capi/values/tally.h"

namespace neml2_capi::model {

// A point that is not evaluated, and by what its increment should be multiplied.
struct LeftOut {
  std::int64_t point;
  double cut;
};

// Evaluates the points of a range that are not left out, which are in their order, by `evaluate`, in arrays of their own, and
// writes what it finds to the caller's. Reports say of those left out that they have this status; their results are left as
// they were, or become NaN. Sums over points must have a row for each. The tally counts all points of the range.
Tally evaluate_others(const Model& model, const Bindings& bindings, std::int64_t begin, std::int64_t end,
                      const Vector<LeftOut>& left_out, std::int32_t status, std::int64_t miters,
                      const std::function<Tally(const Bindings&)>& evaluate);

}  // namespace neml2_capi::model
