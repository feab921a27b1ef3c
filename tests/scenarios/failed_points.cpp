// Failed points leave the others alone, and a step that is too large is cut.
#include "scenario.hpp"

constexpr std::size_t n = 8, failed = 3;
constexpr int peak = 5;

// Steps from rest to the peak of the cycle at once, then again with a strain beyond all measure at one point.
static void one_point_fails_alone(const neml2::Model& model) {
  scenario::Points points(model, n);
  points.load(peak);
  CHECK_OK(points.run());
  const auto good = points.state;

  for (auto& state : points.state) state.fill(-1);
  points.strain[failed][0] = 1e200;
  const int32_t status = points.run();
  CHECK(status >= NEML2_NOT_CONVERGED);
  scenario::State untouched;
  untouched.fill(-1);
  for (std::size_t p = 0; p < n; ++p) {
    CHECK(points.status[p] == (p == failed ? status : NEML2_OK));
    CHECK(points.state[p] == (p == failed ? untouched : good[p]));
  }
  scenario::print("status", points.status, n);
  scenario::print_points("stress", points.state, 6);
}

// Steps from rest to the peak, and halves a step that needs more than 3 iterations.
static void a_step_is_cut_until_it_converges(neml2::Model& model) {
  scenario::Points points(model, n);
  model.set_option("miters", 4);  // the bound of the count, exclusive
  points.load(peak);
  const auto end = points.strain;
  double reached = 0, cut = 1;
  int steps = 0;
  while (reached < 1 && cut > 1e-6) {
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t i = 0; i < 6; ++i) points.strain[p][i] = (reached + cut) * end[p][i];
    points.time = (reached + cut) * peak;
    try {
      points.call.run_or_throw(n);
      points.accept();
      reached += cut;
      ++steps;
    } catch (const neml2::Error& error) {
      if (!error.recoverable()) throw;
      cut /= 2;
    }
  }
  CHECK(reached == 1 && steps > 1);
  scenario::print("steps", &steps, 1);
  scenario::print_points("stress", points.state, 6);
}

int main() {
  return scenario::run([] {
    neml2::Model model = scenario::load("viscoplastic");
    one_point_fails_alone(model);
    a_step_is_cut_until_it_converges(model);
  });
}
