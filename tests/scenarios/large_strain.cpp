// Hencky's elasticity in simple shear, up to an amount of 2: a law of small strain with the logarithmic strain.
#include <cmath>

#include "scenario.hpp"

int main() {
  return scenario::run([] {
    constexpr std::size_t n = 4;
    const neml2::Model model(neml2::Source(scenario::artifact("elasticity"))
                                 .strain_measure(NEML2_STRAIN_LOGARITHMIC, NEML2_STRESS_KIRCHHOFF));
    std::vector<std::array<double, 9>> gradient(n, {1, 0, 0, 0, 1, 0, 0, 0, 1});
    std::vector<scenario::Tensor6> stress(n), expected(n);
    for (std::size_t p = 0; p < n; ++p) {
      const double amount = 0.5 * static_cast<double>(p + 1), size = scenario::young / 1.3 * std::asinh(amount / 2);
      const double root = std::sqrt(4 + amount * amount), normal = size * amount / root;
      gradient[p][1] = amount;
      expected[p] = {normal, -normal, 0, 0, 0, std::sqrt(2.0) * size * 2 / root};
    }
    neml2::Call call(model);
    call.bind_input("deformation_gradient", gradient).bind_output("kirchhoff_stress", stress);
    CHECK_OK(call.run(n));
    CHECK(scenario::near(stress, expected));
    scenario::print_points("stress", stress, 6);
  });
}
