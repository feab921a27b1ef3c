// Hooke's law at 8 points.
#include "scenario.hpp"

int main() {
  return scenario::run([] {
    const neml2::Model model = scenario::load("elasticity");
    const auto strain = scenario::elastic_strains(8);
    std::vector<scenario::Tensor6> stress(8), expected(8);
    neml2::Call call(model);
    call.bind_input("strain", strain).bind_output("stress", stress);
    CHECK_OK(call.run(8));

    for (std::size_t p = 0; p < 8; ++p) expected[p] = scenario::hooke(scenario::young, strain[p]);
    CHECK(scenario::near(stress, expected));
    scenario::print_points("stress", stress, 6);
  });
}
