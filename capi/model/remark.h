// Messages of points that failed, or that are not finite, from the arrays of an evaluation.
#pragma once

#include <cstdint>
#include <string>

#include "capi/model/model.h"
#include "capi/values/bindings.h"
#include "capi/values/tally.h"

namespace neml2_capi::model {

// Returns the scalars `x` that equal their `x~1` at a point, such as the time, as "t = t~1"; mostly none.
std::string steps_of_zero(const Model& model, const Bindings& bindings, std::int64_t point);

// Returns what is NaN or infinite of all that is given of a point, or no point.
NonFinite non_finite_given(const Model& model, const Bindings& bindings, std::int64_t point);

// Returns the message of an evaluation of so many points, or of a part of one, whose worst status is not NEML2_OK.
std::string message_of(const Model& model, const Bindings& bindings, const Tally& tally, std::int64_t points);

}  // namespace neml2_capi::model
