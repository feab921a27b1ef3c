// The generic behaviour of MFront's interface, by which MGIS and the programs on it load a law: `NEML2` in the library.
//
// MGIS (github.com/thelfer/MFrontGenericInterfaceSupport, BehaviourDataView) says by K[0] what is wanted. MGIS passes the
// time step alone: the time at its beginning is 0.
#include "capi/plugin/generic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

#include "capi/plugin/arguments.h"
#include "capi/plugin/energies.h"
#include "capi/plugin/exported.h"
#include "capi/plugin/fatal.h"
#include "capi/plugin/generic_large.h"
#include "capi/plugin/material.h"
#include "capi/plugin/point.h"
#include "capi/plugin/reversible.h"

namespace neml2_capi::plugin {
namespace {

constexpr int OF_ERROR_MESSAGE = 512;
constexpr Words GENERIC_WORDS{"s0.gradients",
                              "s1.gradients",
                              "s0.thermodynamic_forces",
                              "s0.internal_state_variables",
                              "s1.material_properties",
                              "the time",
                              "dt",
                              "the temperature of s1.external_state_variables",
                              "s1.external_state_variables",
                              "K"};

// The request in K[0].
enum class Operator { NONE, ELASTIC, SECANT, TANGENT };

struct Wanted {
  bool sound, prediction;
  Operator kind;
};

Wanted wanted(double code) {
  const double given = code;
  const bool sound = code > 50;
  if (sound) code -= 100;
  if (!(code > -3.5 && code < 4.5))
    refuse("K[0] is " + std::to_string(given) +
           "; it says what to compute, from -3 to 4, and 100 more for the speed of sound.");
  const double size = std::abs(code);
  const Operator kind = size <= 0.5   ? Operator::NONE
                        : size <= 1.5 ? Operator::ELASTIC
                        : size <= 2.5 ? Operator::SECANT
                                      : Operator::TANGENT;
  return {sound, code < -0.5, kind};
}

// Refuses a null pointer to what is needed.
void need(const void* pointer, bool needed, const char* name) {
  if (needed && !pointer) refuse(std::string(name) + " is a null pointer, and the behaviour needs it.");
}

void check(const BehaviourData& d, const Mapping& map, const Wanted& what) {
  const bool integrates = !what.prediction;
  const bool states = std::any_of(map.states.begin(), map.states.end(),
                                  [&](const Variable& state) { return state.name != map.stress; });
  const bool fields = !map.temperature.empty() || !map.fields.empty();
  need(d.s0.gradients, true, "s0.gradients");
  need(d.s1.gradients, integrates, "s1.gradients");
  need(d.s0.forces, true, "s0.thermodynamic_forces");
  need(d.s1.forces, integrates, "s1.thermodynamic_forces");
  need(d.s1.properties, !map.parameters.empty(), "s1.material_properties");
  need(d.s0.states, states, "s0.internal_state_variables");
  need(d.s1.states, states && integrates, "s1.internal_state_variables");
  need(d.s0.external, fields, "s0.external_state_variables");
  need(d.s1.external, fields && integrates, "s1.external_state_variables");
  need(d.speed_of_sound, what.sound, "speed_of_sound");
}

// The tensors of a hypothesis. MFront writes xx, yy, zz and xy under plane stress, and what is zz there does not count.
struct Tensors {
  Tensors(const Material& material, std::int32_t hypothesis)
      : convention(some_of(GENERIC, material.components)),
        states(hypothesis == NEML2_TRIDIMENSIONAL ? GENERIC : NUMBERS),
        is_plane_stress(hypothesis == NEML2_PLANE_STRESS) {}

  int size() const { return convention.size + is_plane_stress; }
  // The position of a component in an array of the host.
  int at(int i) const { return i + (is_plane_stress && i == 2); }

  void read(const double* from, double* to) const {
    for (int i = 0; i < convention.size; ++i) to[convention.place[i]] = from[at(i)];
  }
  void write(const double* from, double* to) const {
    std::fill_n(to, size(), 0.0);
    for (int i = 0; i < convention.size; ++i) to[at(i)] = from[convention.place[i]];
  }
  void write_operator(const double* from, double* to) const {
    std::fill_n(to, size() * size(), 0.0);
    for (int i = 0; i < convention.size; ++i)
      for (int j = 0; j < convention.size; ++j)
        to[size() * at(i) + at(j)] = from[convention.size * convention.place[i] + convention.place[j]];
  }

  Convention convention;
  const Convention& states;
  bool is_plane_stress;
};

void gather(const BehaviourData& d, const Material& m, const Tensors& tensors, const Wanted& what, Workspace& w) {
  const Mapping& map = m.mapping;
  tensors.read(d.s0.gradients, w.old_strain.data());
  tensors.read(what.prediction ? d.s0.gradients : d.s1.gradients, w.strain.data());
  tensors.read(d.s0.forces, w.old_state.data());
  states_to_model(m, tensors.states, d.s0.states, 1, nullptr, w.old_state.data());
  w.old_time = 0;
  w.time = d.dt;
  const double *before = d.s0.external, *now = what.prediction ? d.s0.external : d.s1.external;
  if (!map.temperature.empty()) {
    w.old_temperature[0] = *before++;
    w.temperature[0] = *now++;
  }
  fields_to_model(m, GENERIC, before, 1, w.old_fields.data());
  fields_to_model(m, GENERIC, now, 1, w.fields.data());
  parameters_to_model(m, GENERIC, d.s1.properties, w.parameters.data());
}

// Writes energies of the beginning as energies of the end.
void keep_energies(const BehaviourData& d, const Mapping& map) {
  const auto keep = [](const std::string& name, const double* before, double* now) {
    if (!name.empty() && before && now) *now = *before;
  };
  keep(map.stored_energy, d.s0.stored, d.s1.stored);
  keep(map.dissipated_energy, d.s0.dissipated, d.s1.dissipated);
}

void scatter(const Material& m, const Tensors& tensors, const Workspace& w, const BehaviourData& d) {
  tensors.write(w.state.data(), d.s1.forces);
  states_to_host(m, tensors.states, w.state.data(), 1, d.s1.states);
  if (w.stays) return keep_energies(d, m.mapping);
  if (!m.mapping.stored_energy.empty() && d.s1.stored) *d.s1.stored = w.stored_energy(m, 0);
  if (!m.mapping.dissipated_energy.empty() && d.s1.dissipated) *d.s1.dissipated = w.dissipated_energy(m, 0);
}

// Adds to an energy of the beginning, which is zero if the host has none.
void add(const double* before, double increment, double* now) {
  if (now) *now = (before ? *before : 0) + increment;
}

// The speed of the fastest of the waves along the axes.
double speed_of_sound(const BehaviourData& d, const Material& m, const double* elastic) {
  const double* density = d.s1.mass_density ? d.s1.mass_density : d.s0.mass_density;
  if (!density || !(*density > 0) || !std::isfinite(*density))
    refuse("the speed of sound needs a mass density above 0, in s1.mass_density; it is " +
           (density ? std::to_string(*density) : "a null pointer") + ".");
  double stiffness = 0;
  for (std::size_t i = 0; i < m.size(); ++i)
    if (m.components[i] < 3) stiffness = std::max(stiffness, elastic[(m.size() + 1) * i]);
  if (!(stiffness >= 0)) refuse("the speed of sound is not real: the elastic operator has no positive stiffness.");
  return std::sqrt(stiffness / *density);
}

void tell(const BehaviourData& d, const char* text) {
  if (d.error_message) std::snprintf(d.error_message, OF_ERROR_MESSAGE, "%s", text);
}

// Asks for a smaller step, in the library's words.
int give_up(const BehaviourData& d, const Workspace& w) {
  constexpr double halve = 0.5;
  if (d.rdt) *d.rdt = std::min(*d.rdt, w.cut[0] < 1 ? w.cut[0] : halve);
  tell(d, last_words().c_str());
  return -1;
}

// 1 if all is well, -1 if the step must be smaller.
int evaluate(const BehaviourData& d, std::int32_t hypothesis) {
  const Material& m = under(only_material(), hypothesis);
  const Tensors tensors(m, hypothesis);
  need(d.K, true, "K");
  const Wanted what = wanted(d.K[0]);
  check(d, m.mapping, what);
  Workspace& w = workspace(m, 1, what.kind == Operator::TANGENT ? Purpose::TANGENT : Purpose::VALUES);
  gather(d, m, tensors, what, w);
  const bool integrates = m.mapping.integrates_energies && !what.prediction && (d.s1.stored || d.s1.dissipated);
  double elastic[36], secant[36];
  const auto at = [&](bool end) {
    const auto pick = [&](const auto& last, const auto& first) { return (end ? last : first).data(); };
    const Rest rest{pick(w.strain, w.old_strain),
                    pick(w.state, w.old_state),
                    pick(w.temperature, w.old_temperature),
                    pick(w.fields, w.old_fields),
                    w.parameters.data(),
                    end ? d.dt : 0,
                    d.dt};
    if (what.sound || integrates || what.kind == Operator::ELASTIC) elastic_operator(m, rest, elastic);
    if (what.kind == Operator::SECANT) secant_operator(m, rest, secant);
  };
  if (!what.prediction || what.kind == Operator::TANGENT) {
    if (!evaluate_point(m, w, d.dt, GENERIC_WORDS)) return give_up(d, w);
  } else {
    require_finite(m, w, 1, d.dt, GENERIC_WORDS);
  }
  at(!what.prediction);
  const double speed = what.sound ? speed_of_sound(d, m, elastic) : 0;
  const Energies energies = integrates ? energies_of(m, w, elastic) : Energies();
  // From here on nothing fails: results are written together.
  if (what.sound) *d.speed_of_sound = speed;
  if (what.kind == Operator::ELASTIC) tensors.write_operator(elastic, d.K);
  if (what.kind == Operator::SECANT) tensors.write_operator(secant, d.K);
  if (what.kind == Operator::TANGENT) tensors.write_operator(w.tangent.data(), d.K);
  if (!what.prediction) scatter(m, tensors, w, d);
  if (integrates) {
    add(d.s0.stored, energies.stored, d.s1.stored);
    add(d.s0.dissipated, energies.dissipated, d.s1.dissipated);
  }
  return 1;
}

int integrate(BehaviourData* data, std::int32_t hypothesis) {
  if (!data) return -1;
  try {
    const Mapping& map = only_material().mapping;
    if (map.strain_measure.empty()) return evaluate(*data, hypothesis);
    if (hypothesis != NEML2_TRIDIMENSIONAL)
      refuse("a law with a strain measure is evaluated in three dimensions: load the hypothesis Tridimensional.");
    return evaluate_large(*data, map, [](const BehaviourData& d) { return evaluate(d, NEML2_TRIDIMENSIONAL); });
  } catch (const std::exception& error) {
    tell(*data, words_of(error));
    return -1;
  }
}

}  // namespace
}  // namespace neml2_capi::plugin

#define INTEGRATE(name, hypothesis)                                               \
  extern "C" EXPORTED int NEML2_##name(neml2_capi::plugin::BehaviourData* data) { \
    return neml2_capi::plugin::integrate(data, hypothesis);                       \
  }

INTEGRATE(Tridimensional, NEML2_TRIDIMENSIONAL)
INTEGRATE(PlaneStrain, NEML2_PLANE_STRAIN)
INTEGRATE(PlaneStress, NEML2_PLANE_STRESS)
INTEGRATE(Axisymmetrical, NEML2_AXISYMMETRICAL)
INTEGRATE(GeneralisedPlaneStrain, NEML2_GENERALISED_PLANE_STRAIN)
INTEGRATE(AxisymmetricalGeneralisedPlaneStrain, NEML2_AXISYMMETRICAL_GENERALISED_PLANE_STRAIN)
