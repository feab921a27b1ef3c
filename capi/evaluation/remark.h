// Remark on the inputs of a point whose residual is not finite.
#pragma once

#include <cstdint>
#include <string>

#include "capi/model/model.h"
#include "capi/values/bindings.h"

namespace neml2_capi::model {

// Returns a remark on the first input that is not finite at a point, or else on scalars `x` that equal their `x~1`, such
// as the time; an empty one where neither is so.
std::string remark_on_inputs(const Model& model, const Bindings& bindings, std::int64_t point);

}  // namespace neml2_capi::model
