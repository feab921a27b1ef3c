// The arrays of an evaluation: which there are, and whether they may be where they are.
#pragma once

#include <vector>

#include "capi/model/model.h"
#include "capi/values/bindings.h"

namespace neml2_capi::model {

// Bindings of no points, with room for all arrays of this model; none is bound.
Bindings bindings_for(const Model& model);

// Returns the variable that the derivative of an input is.
Variable variable_of(const Model& model, const Slope& slope);

// Throws NEML2_ERROR_UNSUPPORTED if a derivative is bound that an input moves, and was not compiled by that input.
void require_derivatives(const Model& model, const Bindings& bindings);

// Checks that no array reaches beyond memory, and that none that is written overlaps another. An output may take the
// very array of an input, which must then be copied before anything is written: the answer says which. With another
// array what one chunk writes would be read by a later one. Throws NEML2_ERROR_ARGUMENT.
std::vector<bool> inputs_to_copy(const Model& model, const Bindings& bindings, std::int64_t miters,
                                 std::int64_t component_stride = 1);

}  // namespace neml2_capi::model
