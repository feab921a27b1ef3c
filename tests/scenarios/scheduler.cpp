// Points in sub-batches on the devices of a scheduler: the same results, and errors of each sub-batch.
#include "scenario.hpp"

constexpr std::size_t n = 8;
constexpr int steps = 5, batch_size = 3;

// Steps from rest through the beginning of the cycle.
static std::vector<scenario::State> cycled(const neml2::Model& model) {
  scenario::Points points(model, n);
  for (int k = 1; k <= steps; ++k) {
    if (k > 1) points.accept();
    points.load(k);
    CHECK_OK(points.run());
  }
  return points.state;
}

// Steps from rest to the peak at once, with strains beyond all measure at the points 1 and 6.
static void sub_batches_fail(const neml2::Model& model) {
  scenario::Points points(model, n);
  points.load(steps);
  points.strain[1][0] = points.strain[6][0] = 1e200;
  std::vector<int32_t> errors;
  try {
    points.call.run_or_throw(n);
  } catch (const neml2::AggregateError& error) {
    CHECK(error.recoverable());
    for (const neml2::Error& one : error.errors()) errors.push_back(one.status());
  }
  scenario::print("errors", errors, errors.size());
  scenario::print("status", points.status, n);
}

int main() {
  return scenario::run([] {
    neml2::Scheduler scheduler;
    scheduler.add(neml2::cpu, batch_size);
    const neml2::Model plain = scenario::load("viscoplastic");
    const neml2::Model model(neml2::Source(scenario::artifact("viscoplastic")).scheduler(scheduler));
    const auto states = cycled(model);
    CHECK(states == cycled(plain));
    scenario::print_points("state", states, 19);
    CHECK(points_evaluated(model, 0) == static_cast<int64_t>(n) * steps);
    sub_batches_fail(model);
  });
}
