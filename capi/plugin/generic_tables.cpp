// What a host of MGIS reads of the generic behaviour `NEML2` before it calls it: tables of names and types, which are
// filled when the library is loaded. Under hypotheses, states are numbers: MFront's tensors lack components there.
#include <neml2_capi.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include "capi/hypotheses/hypothesis.h"
#include "capi/plugin/conventions.h"
#include "capi/plugin/exported.h"
#include "capi/plugin/mapping.h"
#include "capi/plugin/payload.h"

namespace neml2_capi::plugin {
namespace {

constexpr int MOST = 1000;  // names of a table

// MFront's types of variables, by Kind.
constexpr int TYPES[] = {0, 2, 1, 3};

// One item of a variable: a grain of those that a state has, a component of a vector of parameters.
std::string item_name(const std::string& name, std::size_t item, std::size_t items) {
  return items == 1 ? name : name + "[" + std::to_string(item) + "]";
}

}  // namespace
}  // namespace neml2_capi::plugin

extern "C" {

EXPORTED const char* NEML2_mfront_ept = "NEML2";
EXPORTED const char* NEML2_mfront_interface = "Generic";
EXPORTED const char* NEML2_tfel_version = "none: a model of NEML2";
EXPORTED const char* NEML2_src = "neml2-capi plugin";
EXPORTED const char* NEML2_unit_system = "";
EXPORTED unsigned short NEML2_mfront_mkt = 1;
EXPORTED unsigned short NEML2_api_version = 1;
EXPORTED unsigned short NEML2_BehaviourType = 1, NEML2_BehaviourKinematic = 1;  // of small strains
EXPORTED unsigned short NEML2_SymmetryType = 0, NEML2_ElasticSymmetryType = 0;
EXPORTED unsigned short NEML2_requiresStiffnessTensor = 0, NEML2_requiresThermalExpansionCoefficientTensor = 0;
EXPORTED unsigned short NEML2_ComputesInternalEnergy = 0, NEML2_ComputesDissipatedEnergy = 0;
// No symbol of MFront's: energies are of the trapezoidal rule, not of the law.
EXPORTED unsigned short NEML2_IntegratesEnergies = 0;
EXPORTED unsigned short NEML2_nInitializeFunctions = 0, NEML2_nPostProcessings = 0;
EXPORTED unsigned short NEML2_nModellingHypotheses = 6;
EXPORTED const char* NEML2_ModellingHypotheses[] = {"Tridimensional",
                                                    "PlaneStrain",
                                                    "PlaneStress",
                                                    "Axisymmetrical",
                                                    "GeneralisedPlaneStrain",
                                                    "AxisymmetricalGeneralisedPlaneStrain"};
EXPORTED unsigned short NEML2_nGradients = 1, NEML2_nThermodynamicForces = 1;
EXPORTED const char *NEML2_Gradients[] = {"Strain"}, *NEML2_ThermodynamicForces[] = {"Stress"};
EXPORTED int NEML2_GradientsTypes[] = {1}, NEML2_ThermodynamicForcesTypes[] = {1};
EXPORTED unsigned short NEML2_nTangentOperatorBlocks = 2;
EXPORTED const char* NEML2_TangentOperatorBlocks[] = {"Stress", "Strain"};

EXPORTED double NEML2_atol_ParameterDefaultValue = 0, NEML2_rtol_ParameterDefaultValue = 0;
EXPORTED unsigned short NEML2_miters_ParameterDefaultValue = 0, NEML2_rescue_ParameterDefaultValue = 0;

EXPORTED unsigned short NEML2_TemperatureRemovedFromExternalStateVariables = 0;
EXPORTED unsigned short NEML2_nMaterialProperties = 0, NEML2_nInternalStateVariables = 0;
EXPORTED unsigned short NEML2_nExternalStateVariables = 0;
EXPORTED const char* NEML2_MaterialProperties[neml2_capi::plugin::MOST] = {};
EXPORTED const char* NEML2_InternalStateVariables[neml2_capi::plugin::MOST] = {};
EXPORTED const char* NEML2_ExternalStateVariables[neml2_capi::plugin::MOST] = {};
EXPORTED int NEML2_InternalStateVariablesTypes[neml2_capi::plugin::MOST] = {};
EXPORTED int NEML2_ExternalStateVariablesTypes[neml2_capi::plugin::MOST] = {};

#define STATES_OF(hypothesis)                                                                      \
  EXPORTED unsigned short NEML2_##hypothesis##_nInternalStateVariables = 0;                        \
  EXPORTED const char* NEML2_##hypothesis##_InternalStateVariables[neml2_capi::plugin::MOST] = {}; \
  EXPORTED int NEML2_##hypothesis##_InternalStateVariablesTypes[neml2_capi::plugin::MOST] = {};

STATES_OF(PlaneStrain)
STATES_OF(PlaneStress)
STATES_OF(Axisymmetrical)
STATES_OF(GeneralisedPlaneStrain)
STATES_OF(AxisymmetricalGeneralisedPlaneStrain)

}  // extern "C"

namespace neml2_capi::plugin {
namespace {

// Throws std::bad_alloc if a table is full.
void add(unsigned short& count, const char** names, const std::string& name) {
  if (count == MOST) throw std::bad_alloc();
  names[count++] = (new std::string(name))->c_str();  // they stay with the library
}

// A law with a strain measure is a behaviour of large strain: F in, Cauchy's stress out, unless MGIS asks for others.
void show_large_strain() {
  constexpr int tensor = 3;
  NEML2_BehaviourType = 2;
  NEML2_BehaviourKinematic = 3;
  NEML2_Gradients[0] = NEML2_TangentOperatorBlocks[1] = "DeformationGradient";
  NEML2_GradientsTypes[0] = tensor;
}

void show_defaults(const Mapping& map) {
  const auto count = [](double number) { return static_cast<unsigned short>(std::min(number, 65535.0)); };
  NEML2_atol_ParameterDefaultValue = map.option("atol", map.atol);
  NEML2_rtol_ParameterDefaultValue = map.option("rtol", map.rtol);
  NEML2_miters_ParameterDefaultValue = count(map.option("miters", map.miters));
  NEML2_rescue_ParameterDefaultValue = count(map.option("rescue", MOST_RESCUE_SOLVES));
}

// The states under a hypothesis, number by number, and what it adds to the history.
void add_states(const Mapping& map, std::int32_t number, unsigned short& count, const char** names) {
  const auto add_items = [&](const std::string& name, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) add(count, names, item_name(name, i, size));
  };
  const model::Hypothesis hypothesis = model::hypothesis_of(number);
  for (const Variable& state : map.states)
    if (state.name != map.stress) add_items(state.name, state.size);
  add_items(map.strain + "_transverse", hypothesis.free.size());
  if (map.has_stress_history) add_items(map.stress + "_transverse", hypothesis.zero.size());
}

// The tables, before any host reads them.
[[gnu::constructor]] void fill_tables() {
  try {
    const std::vector<Mapping> mappings = read_mappings(payload().mappings);
    if (mappings.size() != 1) {
      NEML2_nModellingHypotheses = 0;  // a behaviour is one material
      return;
    }
    const Mapping& map = mappings.front();
    NEML2_TemperatureRemovedFromExternalStateVariables = !map.temperature.empty();
    if (map.symmetry == "orthotropic") NEML2_SymmetryType = NEML2_ElasticSymmetryType = 1;
    if (!map.strain_measure.empty()) show_large_strain();
    // F, and the rotations of tensors, are of three dimensions.
    if (NEML2_SymmetryType == 1 || !map.strain_measure.empty()) NEML2_nModellingHypotheses = 1;
    show_defaults(map);
    NEML2_IntegratesEnergies = map.integrates_energies;
    NEML2_ComputesInternalEnergy = map.integrates_energies || !map.stored_energy.empty();
    NEML2_ComputesDissipatedEnergy = map.integrates_energies || !map.dissipated_energy.empty();
    for (const Variable& parameter : map.parameters)
      for (std::size_t i = 0; i < parameter.size; ++i)
        add(NEML2_nMaterialProperties, NEML2_MaterialProperties, item_name(parameter.name, i, parameter.size));
    for (const Variable& state : map.states) {
      const std::size_t items = state.size / item_size(state.kind);
      for (std::size_t i = 0; i < items && state.name != map.stress; ++i) {
        add(NEML2_nInternalStateVariables, NEML2_InternalStateVariables, item_name(state.name, i, items));
        NEML2_InternalStateVariablesTypes[NEML2_nInternalStateVariables - 1] = TYPES[static_cast<int>(state.kind)];
      }
    }
    add_states(map, NEML2_PLANE_STRAIN, NEML2_PlaneStrain_nInternalStateVariables,
               NEML2_PlaneStrain_InternalStateVariables);
    add_states(map, NEML2_PLANE_STRESS, NEML2_PlaneStress_nInternalStateVariables,
               NEML2_PlaneStress_InternalStateVariables);
    add_states(map, NEML2_AXISYMMETRICAL, NEML2_Axisymmetrical_nInternalStateVariables,
               NEML2_Axisymmetrical_InternalStateVariables);
    add_states(map, NEML2_GENERALISED_PLANE_STRAIN, NEML2_GeneralisedPlaneStrain_nInternalStateVariables,
               NEML2_GeneralisedPlaneStrain_InternalStateVariables);
    add_states(map, NEML2_AXISYMMETRICAL_GENERALISED_PLANE_STRAIN,
               NEML2_AxisymmetricalGeneralisedPlaneStrain_nInternalStateVariables,
               NEML2_AxisymmetricalGeneralisedPlaneStrain_InternalStateVariables);
    for (const Variable& field : map.fields)
      add(NEML2_nExternalStateVariables, NEML2_ExternalStateVariables, field.name);
  } catch (const std::bad_alloc&) {
    NEML2_nModellingHypotheses = 0;  // rather than tables that lack something
  } catch (const std::exception&) {
    // A shell without an artifact: a call says so.
  }
}

}  // namespace
}  // namespace neml2_capi::plugin
