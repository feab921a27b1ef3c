// What an evaluation gives, written to the arrays of the caller.
#pragma once

#include <cstdint>

#include "capi/evaluation/through_segments.h"

namespace neml2_capi::model {

void write_status(const Bindings& bindings, std::int64_t begin, const Vector<std::int32_t>& status);
// Begins the counts of a rescue at zero.
void clear_rescues(const Bindings& bindings, std::int64_t begin, std::int64_t points);
// The report of points without a solve, all of which are finite.
void write_good_report(const Bindings& bindings, std::int64_t begin, std::int64_t points);

// Outputs and reports of a chunk, once its points are marked.
void write_results(const Model& model, const Bindings& bindings, const Chunk& chunk);
void write_derivatives(const Model& model, const Bindings& bindings, const Chunk& chunk, const Derived& derived);
// The last iterates of failed points; NaN elsewhere. For one thread at a time.
Tensor& iterates_of_all(const Bindings& bindings, std::size_t unknown, const Variable& variable);
// Makes them, of all unknowns, if the caller wants them. For one thread at a time.
void begin_iterates(const Model& model, const Bindings& bindings);
void write_unknowns(const Model& model, const Bindings& bindings, const Chunk& chunk);

// Sums over all points begin at zero.
void clear_sums(const Model& model, const Bindings& bindings);

}  // namespace neml2_capi::model
