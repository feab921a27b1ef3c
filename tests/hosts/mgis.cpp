// A host over MGIS itself: LIBRARY NUMBER_OF_PROPERTIES PROPERTY... . It loads a point to a state in which it flows, asks
// for each operator that K[0] names there, with the speed of sound and without, and lets MGIS integrate many points.
// Each line is a word and numbers: code, status, six by six of K, speed; or what the word says.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "MGIS/Behaviour/Behaviour.hxx"
#include "MGIS/Behaviour/BehaviourData.hxx"
#include "MGIS/Behaviour/Integrate.hxx"
#include "MGIS/Behaviour/MaterialDataManager.hxx"

using namespace mgis::behaviour;

namespace {

constexpr double STRAIN[6] = {4e-3, -1.2e-3, -1.2e-3, 4e-4, 0, 0}, DENSITY = 7.8e-9;

void print(const char* word, double code, int status, const std::vector<double>& numbers, double last) {
  std::printf("%s %g %d", word, code, status);
  for (const double number : numbers) std::printf(" %.17g", number);
  std::printf(" %.17g\n", last);
}

// The strain times a factor, at the end of the step.
void prescribe(State& state, double factor) {
  for (int i = 0; i < 6; ++i) state.gradients[std::size_t(i)] = factor * STRAIN[i];
}

int step(BehaviourData& data, const Behaviour& law, double code, double factor) {
  prescribe(data.s1, factor);
  data.dt = 1;
  data.rdt = 1;
  data.K[0] = code;
  BehaviourDataView view = make_view(data);
  return integrate(view, law);
}

void one_point(const Behaviour& law, const std::vector<double>& properties) {
  BehaviourData data(law);
  for (State* state : {&data.s0, &data.s1}) {
    state->material_properties = properties;
    state->mass_density = DENSITY;
    for (double& field : state->external_state_variables) field = 293.15;
  }
  const int loaded = step(data, law, 4, 1);
  print("loaded", 4, loaded, data.K, data.s1.thermodynamic_forces[0]);
  update(data);
  for (const double code : {-3., -2., -1., 0., 1., 2., 3., 4.})
    for (const double sound : {0., 100.}) {
      revert(data);
      data.speed_of_sound = -1;
      const int status = step(data, law, code + sound, 1.2);
      print("point", code + sound, status, data.K, data.speed_of_sound);
    }
  revert(data);
  data.error_message = nullptr;
  std::printf("failed without a buffer %d\n", step(data, law, 4, 1e60));
}

void many_points(const Behaviour& law, const std::vector<double>& properties) {
  MaterialDataManager points(law, 3);
  for (MaterialStateManager* state : {&points.s0, &points.s1}) {
    for (std::size_t i = 0; i < properties.size(); ++i) setMaterialProperty(*state, law.mps[i].name, properties[i]);
    for (const Variable& field : law.esvs) setExternalStateVariable(*state, field.name, 293.15);
    std::vector<double> densities = {DENSITY, 2 * DENSITY, 4 * DENSITY};
    setMassDensity(*state, std::span<mgis::real>(densities));
  }
  for (std::size_t p = 0; p < 3; ++p)
    for (std::size_t i = 0; i < 6; ++i) points.s1.gradients[6 * p + i] = STRAIN[i];
  BehaviourIntegrationOptions options;
  options.integration_type = IntegrationType::INTEGRATION_ELASTIC_OPERATOR;
  options.compute_speed_of_sound = true;
  const BehaviourIntegrationResult done = integrate(points, options, 1);
  const std::vector<double> K(points.K.begin() + 72, points.K.begin() + 108);
  print("many", 101, done.exit_status, K, points.speed_of_sound[2]);
  std::printf("speeds %.17g %.17g %.17g\n", points.speed_of_sound[0], points.speed_of_sound[1],
              points.speed_of_sound[2]);
  for (double& strain : points.s1.gradients) strain *= 1e60;
  const BehaviourIntegrationResult failed = integrate(points, options, 1);
  std::printf("message %d %s\n", failed.exit_status, failed.error_message.c_str());
}

}  // namespace

int main(int count, char** words) {
  std::vector<double> properties;
  for (int i = 2; i < count; ++i) properties.push_back(std::atof(words[i]));
  const Behaviour law = load(words[1], "NEML2", Hypothesis::TRIDIMENSIONAL);
  std::printf("energies %d %d\n", law.computesStoredEnergy, law.computesDissipatedEnergy);
  one_point(law, properties);
  many_points(law, properties);
  return 0;
}
