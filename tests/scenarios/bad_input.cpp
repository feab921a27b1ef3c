// Wrong requests: each is refused with its subject, and leaves the model as it was.
#include "scenario.hpp"

static void check_elasticity(const neml2::Model& model) {
  const auto strain = scenario::elastic_strains(1);
  std::vector<scenario::Tensor6> stress(1);
  neml2::Call call(model);
  call.bind_input("strain", strain).bind_output("stress", stress);
  CHECK_OK(call.run(1));
  CHECK(scenario::near(stress, {scenario::hooke(scenario::young, strain[0])}));
}

template <class Request>
static void refused(const neml2::Model& model, int32_t expected, Request&& request) {
  try {
    request();
    check_failed(__FILE__, __LINE__, "it was accepted");
  } catch (const neml2::Error& error) {
    CHECK(error.status() == expected && !error.recoverable());
    std::printf("error %d %s\n", static_cast<int>(error.status()), error.subject().c_str());
  }
  check_elasticity(model);
}

int main() {
  return scenario::run([] {
    neml2::Model model = scenario::load("elasticity");
    const auto strain = scenario::elastic_strains(1);
    const std::array<float, 6> single{};
    std::vector<scenario::Tensor6> stress(1);
    neml2::Call call(model), without_input(model);
    call.bind_input("strain", strain).bind_output("stress", stress);
    without_input.bind_output("stress", stress);

    refused(model, NEML2_ERROR_NAME, [&] { call.bind_input("strian", strain); });
    refused(model, NEML2_ERROR_DTYPE, [&] { call.bind_input("strain", single); });
    refused(model, NEML2_ERROR_SHAPE, [&] { call.bind_output("stress", stress, 5); });
    refused(model, NEML2_ERROR_MISSING, [&] { without_input.run_or_throw(1); });
    refused(model, NEML2_ERROR_ARGUMENT, [&] { model.set_option("chunk", -1); });
    refused(model, NEML2_ERROR_NAME, [&] { model.set_parameter("elasticity.nu", 1); });
    refused(model, NEML2_ERROR_FILE, [] { neml2::Model("/nothing/here"); });

    CHECK(stress[0][0] == 0);  // what was refused wrote nothing
    CHECK_OK(call.run(1));     // and changed nothing that was bound
    CHECK(scenario::near(stress, {scenario::hooke(scenario::young, strain[0])}));
  });
}
