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
#include "capi/plugin/fatal.h"
#include "capi/plugin/generic_large.h"
#include "capi/plugin/material.h"
#include "capi/plugin/point.h"
#include "capi/plugin/reversible.h"

namespace neml2_capi::plugin {
namespace {

constexpr int OF_ERROR_MESSAGE = 512;
constexpr Words WORDS{"s0.gradients",
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
  if (!std::isfinite(code)) refuse("K[0] is " + std::to_string(code) + "; it says what to compute, from -3 to 4.");
  const bool sound = code > 50;
  if (sound) code -= 100;
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

void gather(const BehaviourData& d, const Material& m, const Wanted& what, Workspace& w) {
  const Mapping& map = m.mapping;
  to_model(GENERIC, GENERIC.strain, d.s0.gradients, 6, 1, w.old_strain.data());
  to_model(GENERIC, GENERIC.strain, what.prediction ? d.s0.gradients : d.s1.gradients, 6, 1, w.strain.data());
  to_model(GENERIC, GENERIC.stress, d.s0.forces, 6, 1, w.old_state.data());
  states_to_model(m, GENERIC, d.s0.states, 1, nullptr, w.old_state.data());
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

void scatter(const Material& m, const Workspace& w, const BehaviourData& d) {
  to_host(GENERIC, GENERIC.stress, w.state.data(), 6, 1, d.s1.forces);
  states_to_host(m, GENERIC, w.state.data(), 1, d.s1.states);
  if (!m.mapping.stored_energy.empty() && d.s1.stored) *d.s1.stored = w.stored[0];
  if (!m.mapping.dissipated_energy.empty() && d.s1.dissipated) *d.s1.dissipated = w.dissipated[0];
}

void scatter_operator(const double* tangent, double* to) {
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) to[6 * i + j] = tangent[6 * GENERIC.place[i] + GENERIC.place[j]];
}

// The speed of the fastest of the waves along the axes.
double speed_of_sound(const BehaviourData& d, const double* elastic) {
  const double* density = d.s1.mass_density ? d.s1.mass_density : d.s0.mass_density;
  if (!density || !(*density > 0) || !std::isfinite(*density))
    refuse("the speed of sound needs a mass density above 0, in s1.mass_density; it is " +
           (density ? std::to_string(*density) : "a null pointer") + ".");
  const double stiffness = std::max({elastic[0], elastic[7], elastic[14]});
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
int evaluate(const BehaviourData& d) {
  const Material& m = only_material();
  need(d.K, true, "K");
  const Wanted what = wanted(d.K[0]);
  check(d, m.mapping, what);
  Workspace& w = workspace(m, 1, what.kind == Operator::TANGENT ? Purpose::TANGENT : Purpose::VALUES);
  gather(d, m, what, w);
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
    if (what.sound || what.kind == Operator::ELASTIC) elastic_operator(m, rest, elastic);
    if (what.kind == Operator::SECANT) secant_operator(m, rest, secant);
  };
  if (!what.prediction || what.kind == Operator::TANGENT) {
    if (!evaluate_point(m, w, d.dt, WORDS)) return give_up(d, w);
  } else {
    require_finite(m, w, 1, d.dt, WORDS);
  }
  at(!what.prediction);
  const double speed = what.sound ? speed_of_sound(d, elastic) : 0;
  // From here on nothing fails: results are written together.
  if (what.sound) *d.speed_of_sound = speed;
  if (what.kind == Operator::ELASTIC) scatter_operator(elastic, d.K);
  if (what.kind == Operator::SECANT) scatter_operator(secant, d.K);
  if (what.kind == Operator::TANGENT) scatter_operator(w.tangent.data(), d.K);
  if (!what.prediction) scatter(m, w, d);
  return 1;
}

}  // namespace
}  // namespace neml2_capi::plugin

extern "C" __attribute__((visibility("default"))) int NEML2_Tridimensional(neml2_capi::plugin::BehaviourData* data) {
  using namespace neml2_capi::plugin;
  if (!data) return -1;
  try {
    const Mapping& map = only_material().mapping;
    return map.strain_measure.empty() ? evaluate(*data) : evaluate_large(*data, map, evaluate);
  } catch (const std::exception& error) {
    tell(*data, words_of(error));
    return -1;
  }
}
