// Young's modulus is halved in the model, and then another one at each point in one call only.
#include "scenario.hpp"

static double stored_young(const neml2::Model& model) { return model.parameter("elasticity.E").values<double>()[0]; }

int main() {
  return scenario::run([] {
    neml2::Model model = scenario::load("elasticity");
    const auto strain = scenario::elastic_strains(8);
    std::vector<scenario::Tensor6> stress(8), expected(8);
    std::vector<double> young(8, scenario::young);
    neml2::Call call(model);
    call.bind_input("strain", strain).bind_output("stress", stress);

    // The stress belongs to `young`.
    const auto evaluate = [&] {
      CHECK_OK(call.run(8));
      for (std::size_t p = 0; p < 8; ++p) expected[p] = scenario::hooke(young[p], strain[p]);
      CHECK(scenario::near(stress, expected));
    };

    CHECK(stored_young(model) == scenario::young);
    evaluate();
    scenario::print_points("stress", stress, 6);

    model.set_parameter("elasticity.E", stored_young(model) / 2);
    CHECK(stored_young(model) == scenario::young / 2);
    young.assign(8, scenario::young / 2);
    evaluate();
    scenario::print_points("stress", stress, 6);

    for (std::size_t p = 0; p < 8; ++p) young[p] = 100e3 * static_cast<double>(p + 1);
    call.bind_parameter("elasticity.E", young);
    evaluate();
    scenario::print_points("stress", stress, 6);

    CHECK(stored_young(model) == scenario::young / 2);
    call.bind_parameter("elasticity.E", nullptr);
    std::fill(young.begin(), young.end(), scenario::young / 2);
    evaluate();
  });
}
