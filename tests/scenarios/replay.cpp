// A cycle whose strains are known beforehand, by one function: the same bits as one step after another.
#include "scenario.hpp"

constexpr std::size_t n = 5, steps = 20;

int main() {
  return scenario::run([] {
    neml2::Model model = scenario::load("viscoplastic");
    scenario::Points points(model, n);
    std::vector<double> times;
    std::vector<scenario::Tensor6> strain;
    for (std::size_t k = 1; k <= steps; ++k) {
      points.load(static_cast<int>(k));
      times.push_back(points.time);
      strain.insert(strain.end(), points.strain.begin(), points.strain.end());
    }
    const std::array<double, 6> rest{};
    std::vector<scenario::State> state(steps * n);
    neml2::Call call(model);
    call.bind_input("t", times, 0, 1).bind_input("t~1", rest, 0);
    call.bind_input("strain", strain, 6, 6 * n).bind_input("strain~1", rest, 0);
    const char* names[] = {"stress", "equivalent_plastic_strain", "X1", "X2"};
    const std::size_t begins[] = {0, 6, 7, 13};
    for (int i = 0; i < 4; ++i) {
      call.bind_input(names[i] + std::string("~1"), rest, 0);
      call.bind_output(names[i], neml2::Span(state).from(begins[i]), 19, 19 * n);
    }
    int64_t made = 0;
    CHECK_OK(call.run_steps(n, steps, &made));
    CHECK(made == steps);
    for (std::size_t k = 1; k <= steps; ++k) {
      points.load(static_cast<int>(k));
      CHECK_OK(points.run());
      CHECK(std::equal(points.state.begin(), points.state.end(), state.begin() + static_cast<long>((k - 1) * n)));
      points.accept();
    }
    scenario::print_points("state", std::vector<scenario::State>(state.end() - n, state.end()), 19);

    // Four iterations are too few once the strain turns.
    model.set_option("miters", 5);
    CHECK_STATUS(NEML2_NOT_CONVERGED, call.run_steps(n, steps, &made));
    std::printf("made %d\n", static_cast<int>(made));

    // The face knows how long arrays are.
    try {
      CHECK(call.run_steps(n, steps + 1) == -1);
    } catch (const neml2::Error& error) {
      CHECK(error.status() == NEML2_ERROR_SHAPE);
    }
  });
}
