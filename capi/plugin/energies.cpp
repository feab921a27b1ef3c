#include "capi/plugin/energies.h"

#include <numeric>
#include <string>

#include "capi/hypotheses/inverse.h"

namespace neml2_capi::plugin {

Energies energies_of(const Material& m, const Workspace& end, const double* elastic, std::size_t point) {
  const std::size_t size = m.size();
  const double *state = &end.state[m.row * point], *old_state = &end.old_state[m.row * point],
               *strain = &end.strain[size * point], *old_strain = &end.old_strain[size * point];
  double matrix[36] = {};
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j) matrix[6 * i + j] = elastic[size * i + j];
  model::Components all(size);
  std::iota(all.begin(), all.end(), 0);
  const model::Inverse compliance(Numbers(matrix), all);
  if (!compliance.exists())
    refuse(
        "the elastic operator has no inverse, so that energies cannot be integrated: take energies out of the "
        "mapping.");
  Energies found;
  for (std::size_t i = 0; i < size; ++i) {
    const double mean = 0.5 * (old_state[i] + state[i]);
    double change = 0;
    for (std::size_t j = 0; j < size; ++j) change += compliance(i, j) * (state[j] - old_state[j]);
    found.stored += mean * change;
    found.dissipated += mean * (strain[i] - old_strain[i] - change);
  }
  return found;
}

Energies energies_of(const Material& m, const Workspace& end, double step, std::size_t point) {
  double elastic[36];
  const Rest at{&end.strain[m.size() * point],
                &end.state[m.row * point],
                &end.temperature[point],
                end.fields.data() + m.mapping.nfields() * point,
                end.parameters.data(),
                end.time,
                step};
  elastic_operator(m, at, elastic);
  return energies_of(m, end, elastic, point);
}

}  // namespace neml2_capi::plugin
