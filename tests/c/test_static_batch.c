/* A package that was compiled for a batch of two runs multiples of two, and is not run at another size.
 *   test_static_batch ELASTICITY_STATIC
 * Without an argument there is nothing to test: 77 says that it was skipped. */
#include "materials.h"

enum { GREATEST = 64 };

static void right_or_refused(const neml2_model *model, int64_t n) {
  double strain[GREATEST][6], stress[GREATEST][6] = {{0}}, expected[GREATEST][6];
  neml2_call *call = NULL;
  some_strains(n, strain[0]);
  hooke(n, YOUNG, strain[0], expected[0]);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  if (n % 2 == 0) {
    CHECK_OK(neml2_call_run(call, n));
    CHECK_NEAR(6 * n, stress[0], expected[0], 1e-12);
  } else {
    CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_run(call, n));
    CHECK_SAYS("batch of 2");
    for (int64_t i = 0; i < 6 * n; ++i) CHECK(stress[0][i] == 0);
  }
  neml2_call_free(&call);
}

int main(int argc, char **argv) {
  if (argc != 2) return 77;
  neml2_model *model = load(argv[1]);
  for (int64_t n = 1; n <= GREATEST; ++n) right_or_refused(model, n);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
