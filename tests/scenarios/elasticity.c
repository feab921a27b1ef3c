/* Hooke's law at 8 points. */
#include "scenario.h"

enum { N = 8 };

int main(void) {
  scenario_begin();
  neml2_model *model = load(artifact("elasticity"));
  neml2_call *call = NULL;
  double strain[N][6], stress[N][6], expected[N][6];
  elastic_strains(N, strain[0]);
  hooke(N, YOUNG, strain[0], expected[0]);

  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);
  print_points("stress", N, 6, 6, stress[0]);

  neml2_call_free(&call);
  neml2_model_free(&model);
  return scenario_end();
}
