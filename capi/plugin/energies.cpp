#include "capi/plugin/energies.h"

#include <numeric>
#include <string>

#include "capi/hypotheses/inverse.h"

namespace neml2_capi::plugin {

Energies energies_of(const Material& m, const Workspace& end, const double* elastic) {
  const std::size_t size = m.size();
  double matrix[36] = {};
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j) matrix[6 * i + j] = elastic[size * i + j];
  model::Components all(size);
  std::iota(all.begin(), all.end(), 0);
  const model::Inverse compliance(matrix, all);
  if (!compliance.exists())
    refuse(
        "the elastic operator has no inverse, so that energies cannot be integrated: take energies out of the "
        "mapping.");
  Energies found;
  for (std::size_t i = 0; i < size; ++i) {
    const double mean = 0.5 * (end.old_state[i] + end.state[i]);
    double change = 0;
    for (std::size_t j = 0; j < size; ++j) change += compliance(i, j) * (end.state[j] - end.old_state[j]);
    found.stored += mean * change;
    found.dissipated += mean * (end.strain[i] - end.old_strain[i] - change);
  }
  return found;
}

Energies energies_of(const Material& m, const Workspace& end, const Rest& at) {
  double elastic[36];
  elastic_operator(m, at, elastic);
  return energies_of(m, end, elastic);
}

}  // namespace neml2_capi::plugin
