// A State carries the history of points as one who does it by hand.
#include <algorithm>
#include <cstdio>

#include "face.hpp"

using face::refuses;
using face::Tensor6;

constexpr std::size_t n = 3;

static std::vector<Tensor6> strain_at(int step) {
  std::vector<Tensor6> strain = face::strains(n);
  for (Tensor6& e : strain)
    for (double& component : e) component *= step;
  return strain;
}

static std::vector<double> by_hand(const neml2::Model& model, int steps) {
  std::vector<Tensor6> strain, old_strain(n), stress(n), old_stress(n), x1(n), old_x1(n), x2(n), old_x2(n);
  std::vector<double> plastic(n), old_plastic(n);
  double t = 0, old_t = 0;
  for (int step = 1; step <= steps; ++step) {
    neml2::Call call(model);
    strain = strain_at(step);
    t = step;
    call.bind_input("strain", strain).bind_input("strain~1", old_strain).bind_input("stress~1", old_stress);
    call.bind_input("X1~1", old_x1).bind_input("X2~1", old_x2).bind_input("t", t, 0).bind_input("t~1", old_t, 0);
    call.bind_input("equivalent_plastic_strain~1", old_plastic).bind_output("equivalent_plastic_strain", plastic);
    call.bind_output("stress", stress).bind_output("X1", x1).bind_output("X2", x2);
    call.run_or_throw(n);
    old_strain = strain, old_stress = stress, old_x1 = x1, old_x2 = x2, old_plastic = plastic, old_t = t;
  }
  const neml2::Span<double> values(stress);
  return {values.begin(), values.end()};
}

static void the_history_is_that_by_hand(const neml2::Model& model) {
  neml2::State state(model, n);
  neml2::Call call(model);
  state.bind(call);
  for (int step = 1; step <= 4; ++step) {
    const std::vector<Tensor6> strain = strain_at(step);
    const neml2::Span<const double> numbers(strain);
    std::copy(numbers.begin(), numbers.end(), state["strain"].begin());
    std::fill(state["t"].begin(), state["t"].end(), step);
    call.run_or_throw(n);
    call.run_or_throw(n); /* again, from the same history */
    if (step < 4) state.advance();
  }
  const std::vector<double> expected = by_hand(model, 4);
  CHECK(std::equal(expected.begin(), expected.end(), state["stress"].begin()));
  CHECK(state.old("stress")[0] != state["stress"][0] && expected[0] != 0);
}

// Continues with another model, as if the program were begun again.
static void a_run_goes_on_from_a_file(const neml2::Model& model) {
  const char* path = "test_state.state";
  neml2::State state(model, n);
  neml2::Call call(model);
  state.bind(call);
  const auto advance = [](neml2::State& its, neml2::Call& evaluation, int step) {
    const std::vector<Tensor6> strain = strain_at(step);
    const neml2::Span<const double> numbers(strain);
    std::copy(numbers.begin(), numbers.end(), its["strain"].begin());
    std::fill(its["t"].begin(), its["t"].end(), step);
    evaluation.run_or_throw(n);
    its.advance();
  };
  for (int step = 1; step <= 2; ++step) advance(state, call, step);
  call.save_state(path, n, 2, 0.5);
  const neml2::Model other(face::path("viscoplastic"));
  neml2::State continued(other, n);
  neml2::Call evaluation(other);
  continued.bind(evaluation);
  double time = 0;
  CHECK(evaluation.load_state(path, n, &time) == 2 && time == 0.5);
  for (int step = 3; step <= 4; ++step) advance(continued, evaluation, step);
  const std::vector<double> expected = by_hand(model, 4);
  CHECK(std::equal(expected.begin(), expected.end(), continued.old("stress").begin()));
  CHECK(refuses(NEML2_ERROR_SHAPE, "npoints", [&] { evaluation.load_state(path, n - 1); }));
  std::remove(path);
  CHECK(refuses(NEML2_ERROR_FILE, path, [&] { evaluation.load_state(path, n); }));
}

// What is const may lie in memory that cannot be written.
static void a_file_is_not_read_into_const_arrays(const neml2::Model& model) {
  static const Tensor6 zero{};
  static const double none = 0;
  const char* path = "test_const.state";
  face::Step step(model, n);
  step.call.bind_input("X1~1", zero, 0);
  step.call.save_state(path, n, 1);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "X1~1", [&] { step.call.load_state(path, n); }));
  Tensor6 mine{};
  step.call.bind_input("X1~1", mine, 0).bind_input("t~1", none, 0);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "t~1", [&] { step.call.load_state(path, n); }));
  const std::vector<Tensor6> strain = step.strain;  // no history, and not written
  step.call.bind_input("t~1", step.old_time, 0).bind_input("strain", strain).bind_input("t", none, 0);
  CHECK(step.call.load_state(path, n) == 1);
  std::remove(path);
}

static void mistakes_are_named(const neml2::Model& model) {
  neml2::State state(model, n);
  CHECK(refuses(NEML2_ERROR_NAME, "strss", [&] { state["strss"]; }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "stress", [&] { state.old("stress", 2); }));
}

int main() {
  return face::run([] {
    const neml2::Model model(face::path("viscoplastic"));
    the_history_is_that_by_hand(model);
    a_run_goes_on_from_a_file(model);
    a_file_is_not_read_into_const_arrays(model);
    mistakes_are_named(model);
  });
}
