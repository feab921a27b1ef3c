/* Young's modulus is halved in the model, and then another one at each point in one call only. */
#include "scenario.h"

enum { N = 8 };

static double stored_young(const neml2_model *model) {
  neml2_tensor *young = NULL;
  REQUIRE_OK(neml2_model_parameter_get(&young, model, "elasticity.E"));
  const double value = *tensor_values(young);
  neml2_tensor_free(&young);
  return value;
}

static void store_young(neml2_model *model, double value) {
  neml2_tensor *young = tensor_over(&value, 0, NULL);
  CHECK_OK(neml2_model_parameter_set(model, "elasticity.E", young));
  neml2_tensor_free(&young);
}

int main(void) {
  scenario_begin();
  neml2_model *model = load(artifact("elasticity"));
  neml2_call *call = NULL;
  double strain[N][6], stress[N][6], expected[N][6], young[N];
  elastic_strains(N, strain[0]);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));

  CHECK(stored_young(model) == YOUNG);
  CHECK_OK(neml2_call_run(call, N));
  hooke(N, YOUNG, strain[0], expected[0]);
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);
  print_points("stress", N, 6, 6, stress[0]);

  store_young(model, stored_young(model) / 2);
  CHECK(stored_young(model) == YOUNG / 2);
  CHECK_OK(neml2_call_run(call, N));
  hooke(N, YOUNG / 2, strain[0], expected[0]);
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);
  print_points("stress", N, 6, 6, stress[0]);

  for (int p = 0; p < N; ++p) {
    young[p] = 100e3 * (p + 1);
    hooke(1, young[p], strain[p], expected[p]);
  }
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, "elasticity.E", young, NEML2_FLOAT64, 1));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);
  print_points("stress", N, 6, 6, stress[0]);
  CHECK(stored_young(model) == YOUNG / 2);
  CHECK_ELASTICITY_WITH(model, YOUNG / 2);

  neml2_call_free(&call);
  neml2_model_free(&model);
  return scenario_end();
}
