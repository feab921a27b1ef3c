// Four threads share one model, each with a call and points of its own.
#include <thread>

#include "scenario.hpp"

constexpr std::size_t n = 64, quarters = 4, quarter = n / quarters;
constexpr int steps = 5;

// Returns the states of points after some steps of the cycle; empty if one failed.
static std::vector<scenario::State> after_steps(const neml2::Model& model, std::size_t count, std::size_t first) {
  scenario::Points points(model, count, first);
  for (int k = 1; k <= steps; ++k) {
    points.load(k);
    if (points.run() != NEML2_OK) return {};
    points.accept();
  }
  return points.state;
}

int main() {
  return scenario::run([] {
    const neml2::Model model = scenario::load("viscoplastic");
    const auto serial = after_steps(model, n, 0);
    CHECK(serial.size() == n);

    std::array<std::vector<scenario::State>, quarters> parallel;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < quarters; ++i)
      threads.emplace_back([&, i] { parallel[i] = after_steps(model, quarter, i * quarter); });
    for (std::thread& thread : threads) thread.join();

    std::vector<scenario::State> joined;
    for (const auto& part : parallel) joined.insert(joined.end(), part.begin(), part.end());
    CHECK(joined == serial);
    scenario::print("state", serial.front(), 19);
    scenario::print("state", serial.back(), 19);
  });
}
