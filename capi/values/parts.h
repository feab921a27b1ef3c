// The parts that arrays have in an evaluation, to go through all of them.
#pragma once

#include "capi/values/non_finite.h"
#include "capi/values/points.h"

namespace neml2_capi::model {

inline constexpr Part given_parts[] = {Part::input, Part::parameter, Part::tangent, Part::cotangent};
inline constexpr Part derived_parts[] = {Part::block, Part::parameter_block, Part::jvp, Part::adjoint,
                                         Part::parameter_adjoint};
inline constexpr Part all_parts[] = {
    Part::input, Part::parameter,       Part::tangent, Part::cotangent, Part::output,
    Part::block, Part::parameter_block, Part::jvp,     Part::adjoint,   Part::parameter_adjoint};

inline bool is_given(Part part) { return part < Part::output; }
inline bool is_block(Part part) { return part == Part::block || part == Part::parameter_block; }
// Adjoints may be summed over the points.
inline bool is_adjoint(Part part) { return part == Part::adjoint || part == Part::parameter_adjoint; }

// Returns the kind of the variables of a part; of blocks, what they are derivatives with respect to.
inline Kind kind_of(Part part) {
  switch (part) {
    case Part::output:
    case Part::cotangent:
    case Part::jvp: return Kind::output;
    case Part::parameter:
    case Part::parameter_block:
    case Part::parameter_adjoint: return Kind::parameter;
    default: return Kind::input;
  }
}

}  // namespace neml2_capi::model
