// Points that failed in one step, of a model that may cut their increments.
#pragma once

#include "capi/evaluation/route.h"

namespace neml2_capi::model {

// Tells whether a segment of an artifact may cut increments.
bool may_cut(const artifact::Metadata& metadata);

// Evaluates the points of a range that failed once more, by a route that cuts increments, and counts all. `status` has a
// number for each point of the range.
void cut_failed(const Plan& plan, const Bindings& bindings, const Range& range, const Points& status,
                const Route& substeps, Workspace& workspace, Tally& tally);

}  // namespace neml2_capi::model
