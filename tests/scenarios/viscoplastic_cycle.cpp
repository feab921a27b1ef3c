// A cycle of tension and compression: all state variables of a point lie in one array.
#include "scenario.hpp"

constexpr int steps = 20;

static double trace(const scenario::State& state, std::size_t begin) {
  return state[begin] + state[begin + 1] + state[begin + 2];
}

static void check_evolution(const scenario::Points& points) {
  for (std::size_t p = 0; p < points.state.size(); ++p) {
    const scenario::State &state = points.state[p], &old_state = points.old_state[p];
    CHECK(state[6] >= old_state[6]);                                                   // plastic strain
    CHECK(std::fabs(trace(state, 7)) < 1e-10 && std::fabs(trace(state, 13)) < 1e-10);  // back stresses, MPa
  }
}

int main() {
  return scenario::run([] {
    scenario::Points points(scenario::load("viscoplastic"), 5);
    for (int k = 1; k <= steps; ++k) {
      points.load(k);
      CHECK_OK(points.run());
      check_evolution(points);
      points.accept();
    }
    CHECK(points.state[0][6] > 1e-3);  // it did flow
    scenario::print_points("state", points.state, 19);
    scenario::print("iterations", points.iterations, 5);
  });
}
