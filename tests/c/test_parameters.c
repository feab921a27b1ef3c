/* Parameters: stored, batched, overridden in one call; what does not fit changes nothing. */
#include "materials.h"

#define E "elasticity.E"

static void set_young(neml2_model *model, double value) {
  neml2_tensor *tensor = tensor_over(&value, 0, NULL);
  CHECK_OK(neml2_model_parameter_set(model, E, tensor));
  neml2_tensor_free(&tensor);
}

static void half_the_modulus_is_half_the_stress(neml2_model *model) {
  set_young(model, 100e3);
  CHECK_ELASTICITY_WITH(model, 100e3);
  set_young(model, YOUNG);
  CHECK_ELASTICITY(model);
}

static void write_through_a_handle_takes_effect(neml2_model *model) {
  neml2_tensor *young = NULL;
  REQUIRE_OK(neml2_model_parameter_get(&young, model, E));
  CHECK(*tensor_values(young) == YOUNG);
  *tensor_values(young) = 50e3;
  CHECK_ELASTICITY_WITH(model, 50e3);
  set_young(model, YOUNG);
  CHECK(*tensor_values(young) == YOUNG);
  neml2_tensor_free(&young);
  CHECK_ELASTICITY(model);
}

static void one_value_per_point(neml2_model *model) {
  enum { N = 3 };
  double young[N] = {200e3, 100e3, 50e3}, one = YOUNG;
  const int64_t n = N, shape[2] = {N, 6}, other_shape[2] = {2, 6};
  double strain[N][6], expected[N][6];
  some_strains(N, strain[0]);
  for (int p = 0; p < N; ++p) hooke(1, young[p], strain[p], expected[p]);
  neml2_tensor *values = tensor_over(young, 1, &n), *input = tensor_over(strain[0], 2, shape), *output = NULL;
  neml2_tensor *other_input = tensor_over(strain[0], 2, other_shape), *single = tensor_over(&one, 0, NULL);

  CHECK_OK(neml2_model_parameter_set(model, E, values));
  if (CHECK_OK(neml2_model_forward(&output, NULL, model, &input, NULL)))
    CHECK_NEAR(6 * N, tensor_values(output), expected[0], 1e-12);
  neml2_tensor_free(&output);

  /* Two points do not go with three moduli. */
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_model_forward(&output, NULL, model, &other_input, NULL));
  CHECK_SAYS("3");
  CHECK(output == NULL);

  CHECK_OK(neml2_model_parameter_set(model, E, single));
  CHECK_ELASTICITY(model);

  /* The same for one evaluation only. */
  if (CHECK_OK(neml2_model_forward(&output, NULL, model, &input, &values)))
    CHECK_NEAR(6 * N, tensor_values(output), expected[0], 1e-12);
  CHECK_ELASTICITY(model);

  neml2_tensor_free(&output);
  neml2_tensor_free(&single);
  neml2_tensor_free(&other_input);
  neml2_tensor_free(&input);
  neml2_tensor_free(&values);
}

static void a_call_may_bring_its_own(neml2_model *model) {
  enum { N = 4 };
  double young[N] = {1e3, 2e3, 3e3, 4e3};
  double strain[N][6], stress[N][6], expected[N][6];
  neml2_call *call = NULL;
  some_strains(N, strain[0]);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));

  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, E, young, NEML2_FLOAT64, 1));
  CHECK_OK(neml2_call_run(call, N));
  for (int p = 0; p < N; ++p) hooke(1, young[p], strain[p], expected[p]);
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);

  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, E, young + 2, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_run(call, N));
  hooke(N, young[2], strain[0], expected[0]);
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);

  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, E, NULL, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_run(call, N));
  hooke(N, YOUNG, strain[0], expected[0]);
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);

  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_PARAMETER, "nu", young, NEML2_FLOAT64, 0));
  CHECK_SAYS("nu");
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_call_bind(call, NEML2_PARAMETER, E, young, NEML2_FLOAT32, 0));
  CHECK_ABOUT(E);
  neml2_call_free(&call);
  CHECK_ELASTICITY(model);
}

/* A call that exists sees what is stored when it runs. */
static void a_call_sees_the_stored_value(neml2_model *model) {
  double strain[6], stress[6], expected[6];
  neml2_call *call = NULL;
  some_strains(1, strain);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, 1));
  set_young(model, 10e3);
  CHECK_OK(neml2_call_run(call, 1));
  hooke(1, 10e3, strain, expected);
  CHECK_NEAR(6, stress, expected, 1e-12);
  set_young(model, YOUNG);
  neml2_call_free(&call);
}

static void what_does_not_fit_changes_nothing(neml2_model *model) {
  const double six[6] = {1, 2, 3, 4, 5, 6};
  const float single = 1;
  const int64_t three_by_two[2] = {3, 2};
  neml2_tensor *wrong_dtype = NULL, *young = NULL, *wide = NULL, *wide_input = NULL, *output = NULL;

  REQUIRE_OK(neml2_tensor_wrap(&wrong_dtype, (void *)&single, NEML2_FLOAT32, 0, NULL, NULL, NULL, NULL));
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_model_parameter_set(model, E, wrong_dtype));
  CHECK_ABOUT(E);
  CHECK_SAYS("float64");
  CHECK_SAYS("float32");
  CHECK_ELASTICITY(model);

  /* The base shape of E is (): every leading axis is a batch axis, and is checked against the inputs. */
  wide = tensor_over(six, 2, three_by_two);
  REQUIRE_OK(neml2_tensor_create(&wide_input, NEML2_FLOAT64, 2, (const int64_t[]){5, 6}));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_model_forward(&output, NULL, model, &wide_input, &wide));
  CHECK_SAYS(E);
  CHECK_ELASTICITY(model);

  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_parameter_set(model, "elasticity.nu", wide));
  CHECK_SAYS("elasticity.nu");
  CHECK_SAYS(E);
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_parameter_get(&young, model, "nu"));
  CHECK(young == NULL);
  CHECK_ELASTICITY(model);

  neml2_tensor_free(&wide_input);
  neml2_tensor_free(&wide);
  neml2_tensor_free(&wrong_dtype);
}

int main(void) {
  neml2_model *model = load(artifact("elasticity"));
  half_the_modulus_is_half_the_stress(model);
  write_through_a_handle_takes_effect(model);
  one_value_per_point(model);
  a_call_may_bring_its_own(model);
  a_call_sees_the_stored_value(model);
  what_does_not_fit_changes_nothing(model);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
