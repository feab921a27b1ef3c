// What MGIS passes to a generic behaviour (MGIS/Behaviour/BehaviourDataView.hxx), laid out as there. A pointer to what a
// behaviour has none of may be null; so may error_message, rdt, speed_of_sound, densities and energies.
#pragma once

namespace neml2_capi::plugin {

struct InitialState {
  const double *gradients, *forces, *mass_density, *properties, *states, *stored, *dissipated, *external;
};

struct FinalState {
  const double* gradients;
  double* forces;
  const double *mass_density, *properties;
  double *states, *stored, *dissipated;
  const double* external;
};

struct BehaviourData {
  char* error_message;  // 512 characters
  double dt;
  double* K;  // in: what is asked for; out: the operator, [stress][strain]
  double* rdt;
  double* speed_of_sound;
  InitialState s0;
  FinalState s1;
};

}  // namespace neml2_capi::plugin
