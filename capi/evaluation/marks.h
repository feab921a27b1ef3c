// The rule of what is not finite, for the points of a chunk.
#pragma once

#include "capi/evaluation/through_segments.h"

namespace neml2_capi::model {

// Sets the status of the points of a chunk by their inputs and results, before anything is written. Returns the positions
// of the points whose solve failed because of an input that is not finite: their results become NaN by make_nan().
Vector<std::size_t> mark(const Model& model, const Bindings& bindings, Chunk& chunk, const Derived& derived);

// Makes all results of some points NaN, in copies.
void make_nan(const Vector<std::size_t>& positions, const Model& model, Chunk& chunk, Derived& derived);

}  // namespace neml2_capi::model
