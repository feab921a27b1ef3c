// Energies of a law that gives none: the trapezoidal rule over an increment.
#pragma once

#include "capi/plugin/reversible.h"

namespace neml2_capi::plugin {

// Work of an increment, per volume.
struct Energies {
  double stored = 0, dissipated = 0;
};

// Returns the energies of a point: the mean of the stresses at both ends of an increment, times the change of the elastic
// strain (stored), and times the rest of the strain (dissipated). The elastic strain changes with the stress by the elastic operator.
Energies energies_of(const Material& material, const Workspace& end, const double* elastic, std::size_t point = 0);

// The same, with the operator at the end of the increment, which took the host's time step. Throws neml2::Error if there is none.
Energies energies_of(const Material& material, const Workspace& end, double step, std::size_t point = 0);

}  // namespace neml2_capi::plugin
