// The consistent tangent of a plastic step, in both block orders. The load turns before, and the back stresses do not follow
// at once: the tangent is not symmetric.
#include "scenario.hpp"

constexpr std::size_t n = 3;
constexpr int steps = 5;

using Block = std::array<double, 36>;  // [stress][strain]

// Central differences of a step.
static std::vector<Block> differences(scenario::Points& points) {
  const double h = 1e-7;
  std::vector<Block> blocks(n);
  for (std::size_t j = 0; j < 6; ++j) {
    for (auto& strain : points.strain) strain[j] += h;
    CHECK_OK(points.run());
    const auto plus = points.state;
    for (auto& strain : points.strain) strain[j] -= 2 * h;
    CHECK_OK(points.run());
    for (auto& strain : points.strain) strain[j] += h;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t i = 0; i < 6; ++i) blocks[p][6 * i + j] = (plus[p][i] - points.state[p][i]) / (2 * h);
  }
  return blocks;
}

static Block transposed(const Block& block) {
  Block result;
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 6; ++j) result[6 * j + i] = block[6 * i + j];
  return result;
}

// The Frobenius norm of a - b.
static double distance(const Block& a, const Block& b = {}) {
  double sum = 0;
  for (std::size_t i = 0; i < 36; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

int main() {
  return scenario::run([] {
    scenario::Points points(scenario::load("combined_hardening"), n);
    for (int k = 1; k <= steps; ++k) {
      points.load(k);
      CHECK_OK(points.run());
      points.accept();
    }
    points.time = steps + 1;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t i = 0; i < 6; ++i)
        points.strain[p][i] += 0.005 / (1 + 0.5 * static_cast<double>(p)) * scenario::direction[5 - i];

    std::vector<Block> tangent(n), other_order(n);
    points.call.bind_derivative("stress", "strain", tangent);
    CHECK_OK(points.run());
    points.call.bind_derivative("stress", "strain", other_order).set_block_order(NEML2_INPUT_FIRST);
    CHECK_OK(points.run());
    points.call.bind_derivative("stress", "strain", nullptr);
    const auto expected = differences(points);

    for (std::size_t p = 0; p < n; ++p) {
      const double norm = distance(tangent[p]);
      CHECK(distance(tangent[p], expected[p]) < 1e-6 * norm);
      CHECK(distance(tangent[p], transposed(tangent[p])) > 1e-4 * norm);
      CHECK(other_order[p] == transposed(tangent[p]));
    }
    scenario::print_points("tangent", tangent, 36);
  });
}
