/* Hencky's elasticity in simple shear, up to an amount of 2: a law of small strain with the logarithmic strain. */
#include "scenario.h"

enum { N = 4 };

int main(void) {
  scenario_begin();
  neml2_model *model = NULL;
  neml2_call *call = NULL;
  double gradient[N][3][3] = {{{0}}}, stress[N][6], expected[N][6] = {{0}};
  const double shear = YOUNG / 2.6;
  REQUIRE_OK(neml2_model_open(&model, SOURCE(.path = artifact("elasticity"), .strain_measure = NEML2_STRAIN_LOGARITHMIC,
                                             .stress_measure = NEML2_STRESS_KIRCHHOFF)));
  for (int p = 0; p < N; ++p) {
    const double amount = 0.5 * (p + 1), size = 2 * shear * asinh(amount / 2), root = sqrt(4 + amount * amount);
    for (int i = 0; i < 3; ++i) gradient[p][i][i] = 1;
    gradient[p][0][1] = amount;
    expected[p][0] = size * amount / root;
    expected[p][1] = -expected[p][0];
    expected[p][5] = sqrt(2) * size * 2 / root;
  }
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "deformation_gradient", gradient, NEML2_FLOAT64, 9));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "kirchhoff_stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-10);
  print_points("stress", N, 6, 6, stress[0]);

  neml2_call_free(&call);
  neml2_model_free(&model);
  return scenario_end();
}
