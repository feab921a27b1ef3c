#include "capi/plugin/generic_large.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include "capi/plugin/large_strain.h"
#include "capi/plugin/material.h"

namespace neml2_capi::plugin {

using namespace deformation;

namespace {

Matrix gradient_of(const double* from) {
  Matrix gradient;
  for (std::size_t i = 0; i < 9; ++i) gradient[std::size_t(GENERIC.tensor[i])] = from[i];
  return gradient;
}

// Position of the host's component i in NEML2's order.
std::size_t place(std::size_t size, std::size_t i) {
  return std::size_t(size == 9 ? GENERIC.tensor[i] : GENERIC.place[i]);
}

void write(std::span<const double> from, std::size_t rows, std::size_t columns, double* to) {
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      to[columns * i + j] = from[columns * place(rows, i) + (columns == 1 ? 0 : place(columns, j))];
}

Stress stress_of(double code) {
  if (!(code < 2.5)) refuse("K[1] is " + std::to_string(code) + "; it says which stress, from 0 to 2.");
  return code < 0.5 ? Stress::cauchy : code < 1.5 ? Stress::pk2 : Stress::pk1;
}

int tell(const BehaviourData& d, const std::string& reason) {
  constexpr std::size_t size = 512;
  constexpr double halve = 0.5;
  if (d.error_message) std::snprintf(d.error_message, size, "%s", reason.c_str());
  if (d.rdt) *d.rdt = std::min(*d.rdt, halve);
  return -1;
}

void write_operator(const LargeStrain& of, const Six& stress, const Dense<6, 6>& stiffness, double code, double* to) {
  if (code < 0.5) return write(of.slope(Stress::cauchy, stress, stiffness), 6, 9, to);
  if (code < 1.5) return write(of.by_green(stress, stiffness), 6, 6, to);
  if (code < 2.5) return write(of.slope(Stress::pk1, stress, stiffness), 9, 9, to);
  write(of.by_increment(stress, stiffness), 6, 9, to);
}

}  // namespace

int evaluate_large(const BehaviourData& d, const Mapping& mapping,
                   const std::function<int(const BehaviourData&)>& small) {
  const auto need = [](const void* pointer, const char* name) {
    if (!pointer) refuse(std::string(name) + " is a null pointer, and the behaviour needs it.");
  };
  need(d.K, "K");
  const double code = d.K[0], of_operator = d.K[2];
  const bool integrates = !(code < -0.5);
  const Stress given = stress_of(d.K[1]);
  need(d.s0.gradients, "s0.gradients");
  need(d.s0.forces, "s0.thermodynamic_forces");
  if (integrates) need(d.s1.gradients, "s1.gradients");
  if (integrates) need(d.s1.forces, "s1.thermodynamic_forces");
  const Matrix before = gradient_of(d.s0.gradients), now = integrates ? gradient_of(d.s1.gradients) : before;
  if (const std::string reason = LargeStrain::reason_against(now); !reason.empty()) return tell(d, reason);
  const LargeStrain of(measure_of(mapping), before, now);

  const std::size_t size = size_of(given);
  Dense<9, 1> old_stress{};
  for (std::size_t i = 0; i < size; ++i) old_stress[place(size, i)] = d.s0.forces[i];
  double old_strain[6], strain[6], law_before[6], law_now[6] = {}, k[36] = {};
  write(of.old_strain(), 6, 1, old_strain);
  write(of.strain(), 6, 1, strain);
  write(of.old_stress(given, old_stress), 6, 1, law_before);
  BehaviourData law = d;
  k[0] = code;
  law.K = k;
  law.s0.gradients = old_strain;
  law.s0.forces = law_before;
  law.s1.gradients = strain;
  law.s1.forces = law_now;
  const int status = small(law);
  if (status < 1) return status;
  Six stress;
  for (std::size_t i = 0; i < 6; ++i) stress[place(6, i)] = (integrates ? law_now : law_before)[i];
  if (integrates) write(of.stress(given, stress), size, 1, d.s1.forces);
  if (std::abs(code > 50 ? code - 100 : code) <= 0.5) return status;  // no operator
  Dense<6, 6> stiffness;
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 6; ++j) stiffness[6 * place(6, i) + place(6, j)] = k[6 * i + j];
  write_operator(of, stress, stiffness, of_operator, d.K);
  return status;
}

}  // namespace neml2_capi::plugin
