// The rule of what is not finite, for the points of a chunk.
#pragma once

#include "capi/evaluation/through_segments.h"

namespace neml2_capi::model {

// Marks the points of a chunk by all that was given and found, before anything is written.
void mark(const Model& model, const Bindings& bindings, Chunk& chunk, const Derived& derived);

}  // namespace neml2_capi::model
