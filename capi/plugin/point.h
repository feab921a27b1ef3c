// One increment of one point, for the hosts that want its tangent.
#pragma once

#include <cstddef>
#include <string>

#include "capi/plugin/material.h"

namespace neml2_capi::plugin {

// What a host calls its arguments, for messages.
struct Words {
  const char *old_strain, *strain, *stress, *states, *parameters, *time, *step, *temperature, *fields, *tangent;
};

// Refuses what is not finite in the first `points` of a workspace, by the names of the host: no step is small enough for
// it. `step` is the time step.
void require_finite(const Material& material, const Workspace& w, std::size_t points, double step, const Words& words);

// Whether nothing changes at the first points of a workspace but time.
bool stands_still(const Material& material, const Workspace& w, std::size_t points);

// Evaluates the first point of a workspace, and its tangent if that has one; both are finite if it returns true. If the
// tangent alone is not, it is that beside the strain: see docs/hosts/plug-in.md. An increment without time in which
// nothing happens has the tangent of a moment, and stress and states stay. Returns false if a smaller increment may mend
// what failed.
bool evaluate_point(const Material& material, Workspace& w, double step, const Words& words);

// What the library says of the points that failed last.
std::string last_words();

}  // namespace neml2_capi::plugin
