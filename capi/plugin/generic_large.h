// The generic behaviour of a law with a strain measure: MGIS passes F, and asks for one of three stresses by K[1], and for
// one of four operators by K[2].
#pragma once

#include <functional>

#include "capi/plugin/generic.h"
#include "capi/plugin/mapping.h"

namespace neml2_capi::plugin {

// Evaluates the law by `small`, with a view of strains, and converts what it gives. Returns what `small` does.
int evaluate_large(const BehaviourData& data, const Mapping& mapping,
                   const std::function<int(const BehaviourData&)>& small);

}  // namespace neml2_capi::plugin
