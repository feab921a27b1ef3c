// The generic behaviour of MFront's interface, by which MGIS and the programs on it load a law: `NEML2` in the library.
//
// MGIS (github.com/thelfer/MFrontGenericInterfaceSupport, LibrariesManager) asks for tables of names and types, which are
// filled when the library is loaded. The only hypothesis is that of three dimensions.
// MGIS passes the time step alone: the time at its beginning is 0.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <string>

#include "capi/plugin/conventions.h"
#include "capi/plugin/fatal.h"
#include "capi/plugin/material.h"
#include "capi/plugin/payload.h"

#define EXPORT __attribute__((visibility("default")))

namespace neml2_capi::plugin {
namespace {

constexpr int MOST = 1000;  // names of a table
constexpr int OF_ERROR_MESSAGE = 512;

// The order of a tensor of MFront's, in one row by row.
constexpr int TENSOR_ORDER[9] = {0, 4, 8, 1, 3, 2, 6, 5, 7};
// MFront's types of variables, by Kind.
constexpr int TYPES[] = {0, 2, 1, 3};

// One item of a variable: a grain of those that a state has, a component of a vector of parameters.
std::string item_name(const std::string& name, std::size_t item, std::size_t items) {
  return items == 1 ? name : name + "[" + std::to_string(item) + "]";
}

}  // namespace
}  // namespace neml2_capi::plugin

namespace {

struct InitialState {
  const double *gradients, *forces, *mass_density, *properties, *states, *stored, *dissipated, *external;
};

struct State {
  const double* gradients;
  double* forces;
  const double *mass_density, *properties;
  double *states, *stored, *dissipated;
  const double* external;
};

// As MGIS lays out what it passes.
struct Data {
  char* error_message;  // 512 characters
  double dt;
  double* K;  // in: what is asked for; out: the tangent, [stress][strain]
  double* rdt;
  double* speed_of_sound;
  InitialState s0;
  State s1;
};

}  // namespace

extern "C" {

EXPORT const char* NEML2_mfront_ept = "NEML2";
EXPORT const char* NEML2_mfront_interface = "Generic";
EXPORT const char* NEML2_tfel_version = "none: a model of NEML2";
EXPORT const char* NEML2_src = "neml2-capi plugin";
EXPORT const char* NEML2_unit_system = "";
EXPORT unsigned short NEML2_mfront_mkt = 1;
EXPORT unsigned short NEML2_api_version = 1;
EXPORT unsigned short NEML2_BehaviourType = 1, NEML2_BehaviourKinematic = 1;  // of small strains
EXPORT unsigned short NEML2_SymmetryType = 0, NEML2_ElasticSymmetryType = 0;
EXPORT unsigned short NEML2_requiresStiffnessTensor = 0, NEML2_requiresThermalExpansionCoefficientTensor = 0;
EXPORT unsigned short NEML2_ComputesInternalEnergy = 0, NEML2_ComputesDissipatedEnergy = 0;
EXPORT unsigned short NEML2_nInitializeFunctions = 0, NEML2_nPostProcessings = 0;
EXPORT unsigned short NEML2_nModellingHypotheses = 1;
EXPORT const char* NEML2_ModellingHypotheses[] = {"Tridimensional"};
EXPORT unsigned short NEML2_nGradients = 1, NEML2_nThermodynamicForces = 1;
EXPORT const char *NEML2_Gradients[] = {"Strain"}, *NEML2_ThermodynamicForces[] = {"Stress"};
EXPORT int NEML2_GradientsTypes[] = {1}, NEML2_ThermodynamicForcesTypes[] = {1};
EXPORT unsigned short NEML2_nTangentOperatorBlocks = 2;
EXPORT const char* NEML2_TangentOperatorBlocks[] = {"Stress", "Strain"};
EXPORT unsigned short NEML2_nParameters = 0;
EXPORT const char* NEML2_Parameters[] = {nullptr};
EXPORT int NEML2_ParametersTypes[] = {0};

EXPORT unsigned short NEML2_TemperatureRemovedFromExternalStateVariables = 0;
EXPORT unsigned short NEML2_nMaterialProperties = 0, NEML2_nInternalStateVariables = 0;
EXPORT unsigned short NEML2_nExternalStateVariables = 0;
EXPORT const char* NEML2_MaterialProperties[neml2_capi::plugin::MOST] = {};
EXPORT const char* NEML2_InternalStateVariables[neml2_capi::plugin::MOST] = {};
EXPORT const char* NEML2_ExternalStateVariables[neml2_capi::plugin::MOST] = {};
EXPORT int NEML2_InternalStateVariablesTypes[neml2_capi::plugin::MOST] = {};
EXPORT int NEML2_ExternalStateVariablesTypes[neml2_capi::plugin::MOST] = {};

}  // extern "C"

namespace neml2_capi::plugin {
namespace {

void add(unsigned short& count, const char** names, const std::string& name) {
  if (count < MOST) names[count++] = (new std::string(name))->c_str();  // they stay with the library
}

// The tables, before any host reads them.
[[gnu::constructor]] void fill_tables() {
  try {
    const Mapping map = read_mapping(payload().mapping);
    NEML2_TemperatureRemovedFromExternalStateVariables = !map.temperature.empty();
    for (const Variable& parameter : map.parameters)
      for (std::size_t i = 0; i < parameter.size; ++i)
        add(NEML2_nMaterialProperties, NEML2_MaterialProperties, item_name(parameter.name, i, parameter.size));
    for (const Variable& state : map.states) {
      const std::size_t items = state.size / item_size(state.kind);
      for (std::size_t i = 0; i < items && state.name != map.stress; ++i) {
        NEML2_InternalStateVariablesTypes[NEML2_nInternalStateVariables] = TYPES[static_cast<int>(state.kind)];
        add(NEML2_nInternalStateVariables, NEML2_InternalStateVariables, item_name(state.name, i, items));
      }
    }
    for (const Variable& field : map.fields)
      add(NEML2_nExternalStateVariables, NEML2_ExternalStateVariables, field.name);
  } catch (const std::bad_alloc&) {
    NEML2_nModellingHypotheses = 0;  // rather than tables that lack something
  } catch (const std::exception&) {
    // A shell without an artifact: a call says so.
  }
}

void item_to_model(Kind kind, const double* from, double* to) {
  if (kind != Kind::TENSOR) return state_to_model(GENERIC, kind, from, 1, nullptr, to);
  for (int i = 0; i < 9; ++i) to[TENSOR_ORDER[i]] = from[i];
}

void item_to_host(Kind kind, const double* from, double* to) {
  if (kind != Kind::TENSOR) return state_to_host(GENERIC, kind, from, 1, to);
  for (int i = 0; i < 9; ++i) to[i] = from[TENSOR_ORDER[i]];
}

// Calls function(kind, numbers of the host, numbers of a workspace) for each item of each state.
template <class Host, class Own, class Function>
void for_states(const Material& m, Host* host, Own* own, Function function) {
  for (std::size_t k = 0; k < m.mapping.states.size(); ++k) {
    const Variable& state = m.mapping.states[k];
    if (state.name == m.mapping.stress) continue;
    const std::size_t size = item_size(state.kind);
    for (std::size_t i = 0; i < state.size; i += size, host += size) function(state.kind, host, own + m.places[k] + i);
  }
}

void gather(const Data& d, const Material& m, Workspace& w) {
  const Mapping& map = m.mapping;
  to_model(GENERIC, GENERIC.strain, d.s0.gradients, 6, 1, w.old_strain.data());
  to_model(GENERIC, GENERIC.strain, d.s1.gradients, 6, 1, w.strain.data());
  to_model(GENERIC, GENERIC.stress, d.s0.forces, 6, 1, w.old_state.data());
  for_states(m, d.s0.states, w.old_state.data(), item_to_model);
  w.old_time = 0;
  w.time = d.dt;
  const double *before = d.s0.external, *now = d.s1.external;
  if (!map.temperature.empty()) {
    w.old_temperature[0] = *before++;
    w.temperature[0] = *now++;
  }
  for (const Variable& field : map.fields) {
    w.old_fields[field.first] = *before++;
    w.fields[field.first] = *now++;
  }
  const double* property = d.s1.properties;
  for (const Variable& parameter : map.parameters)
    for (std::size_t i = 0; i < parameter.size; ++i) w.parameters[parameter.first + i] = *property++;
}

void scatter_tangent(const Workspace& w, double* to) {
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) to[6 * i + j] = w.tangent[std::size_t(6 * GENERIC.place[i] + GENERIC.place[j])];
}

// 1 where all is well, -1 where the step must be smaller.
int evaluate(Data& d) {
  constexpr double halve = 0.5, moment = 1e-6;
  const Material& m = material();
  const double asked = d.K[0] > 50 ? d.K[0] - 100 : d.K[0];
  const bool predicts = asked < -0.5, with_tangent = predicts || asked > 0.5;
  Workspace& w = workspace(1, with_tangent);
  gather(d, m, w);
  if (predicts) {  // the operator of the beginning: nothing happens, in next to no time
    w.stand_still();
    w.time = w.old_time + moment * d.dt;
  }
  if (w.call.run(1) != NEML2_OK) {
    *d.rdt = std::min(*d.rdt, w.cut[0] < 1 ? w.cut[0] : halve);
    std::snprintf(d.error_message, OF_ERROR_MESSAGE, "The point did not converge: reduce the time step.");
    return -1;
  }
  if (with_tangent) scatter_tangent(w, d.K);
  if (predicts) return 1;
  to_host(GENERIC, GENERIC.stress, w.state.data(), 6, 1, d.s1.forces);
  for_states(m, d.s1.states, w.state.data(),
             [](Kind kind, double* to, const double* from) { item_to_host(kind, from, to); });
  return 1;
}

}  // namespace
}  // namespace neml2_capi::plugin

extern "C" EXPORT int NEML2_Tridimensional(Data* data) {
  try {
    return neml2_capi::plugin::evaluate(*data);
  } catch (const std::exception& error) {
    std::snprintf(data->error_message, neml2_capi::plugin::OF_ERROR_MESSAGE, "%s", neml2_capi::plugin::words_of(error));
    return -1;
  }
}
