// Stresses that a host does not keep: in plane strain and axial symmetry it has no 13 and 23, and a law that takes the
// stress before gets zeros for them.
#pragma once

#include "capi/plugin/conventions.h"
#include "capi/plugin/material.h"

namespace neml2_capi::plugin {

// Whether a law takes the stress before, the host keeps only the first `components` of it, and no state keeps the whole.
bool forgets_shears(const Material& material, int components);

// Whether one of the others is more than round-off beside `scale`.
bool has_more_shears(const Convention& convention, int components, const double* stress, double scale);

// Returns the stress that round-off at a point of a workspace is of. What that has of the tangent counts.
double greatest_stress(const Material& material, const Workspace& w, std::size_t point);

// Refuses a `stress`, of all components in NEML2's notation, that the host would forget a part of. It is that of a point of a
// workspace.
void require_kept(const Material& material, const Convention& convention, int components, const double* stress,
                  const Workspace& w, std::size_t point);

}  // namespace neml2_capi::plugin
