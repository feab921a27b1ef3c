/* Bad input: the error names the variable and says what was expected, and the model is usable afterwards. */
#include "materials.h"

static neml2_call *elasticity_call(const neml2_model *model, const double *strain, double *stress) {
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", (void *)strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  return call;
}

/* neml2_model_forward() of a strain tensor fails, and leaves its out-parameters alone. */
static void check_refused(const neml2_model *model, neml2_tensor *strain, int32_t expected) {
  neml2_tensor *output = NULL;
  neml2_report *report = NULL;
  CHECK_STATUS(expected, neml2_model_forward(&output, &report, model, &strain, NULL));
  CHECK(output == NULL && report == NULL);
  CHECK(neml2_error_status() == expected);
}

static void missing_input(neml2_model *elasticity, neml2_model *viscoplastic) {
  double stress[6] = {0};
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, elasticity));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_call_run(call, 1));
  CHECK_ABOUT("strain");
  CHECK_SAYS("strain");
  CHECK(stress[0] == 0);
  neml2_call_free(&call);

  check_refused(elasticity, NULL, NEML2_ERROR_MISSING);
  CHECK_ABOUT("strain");
  CHECK_ELASTICITY(elasticity);

  /* History is an input like any other. */
  viscoplastic_block b = viscoplastic_create(1);
  call = viscoplastic_call(viscoplastic, &b, 0);
  viscoplastic_load(&b, 1);
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "X1~1", NULL, NEML2_FLOAT64, 0));
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_call_run(call, 1));
  CHECK_ABOUT("X1~1");
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "X1~1", b.old_state + 7, NEML2_FLOAT64, STATE_SIZE));
  CHECK_OK(neml2_call_run(call, 1));
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

static void unknown_input(neml2_model *elasticity) {
  double strain[6], stress[6];
  some_strains(1, strain);
  neml2_call *call = elasticity_call(elasticity, strain, stress);
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_INPUT, "strian", strain, NEML2_FLOAT64, 6));
  CHECK_ABOUT("strian");
  CHECK_SAYS("strian");
  CHECK_SAYS("strain"); /* the names there are */
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_OUTPUT, "strain", stress, NEML2_FLOAT64, 6));
  CHECK_SAYS("stress");
  CHECK_OK(neml2_call_run(call, 1)); /* nothing was changed */
  neml2_call_free(&call);

  int64_t index = 7;
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_variable_find(&index, elasticity, NEML2_INPUT, "strian"));
  CHECK(index == 7);
  CHECK_SAYS("strain");
  CHECK_ELASTICITY(elasticity);
}

static void wrong_trailing_shape(neml2_model *elasticity) {
  double values[12] = {0};
  const int64_t shapes[4][2] = {{2, 5}, {2, 1}, {6, 2}, {2, 3}};
  for (int i = 0; i < 4; ++i) {
    neml2_tensor *strain = tensor_over(values, 2, shapes[i]);
    check_refused(elasticity, strain, NEML2_ERROR_SHAPE);
    CHECK_ABOUT("strain");
    CHECK_SAYS("6");
    neml2_tensor_free(&strain);
  }
  neml2_tensor *scalar = tensor_over(values, 0, NULL);
  check_refused(elasticity, scalar, NEML2_ERROR_SHAPE);
  CHECK_ABOUT("strain");
  neml2_tensor_free(&scalar);
  CHECK_ELASTICITY(elasticity);
}

static void wrong_dtype(neml2_model *elasticity) {
  const int32_t dtypes[3] = {NEML2_FLOAT32, NEML2_INT64, NEML2_BFLOAT16};
  const char *const names[3] = {"float32", "int64", "bfloat16"};
  const int64_t shape[2] = {2, 6};
  double strain[2][6], stress[2][6];
  some_strains(2, strain[0]);
  neml2_call *call = elasticity_call(elasticity, strain[0], stress[0]);
  for (int i = 0; i < 3; ++i) {
    neml2_tensor *tensor = NULL;
    REQUIRE_OK(neml2_tensor_create(&tensor, dtypes[i], 2, shape));
    check_refused(elasticity, tensor, NEML2_ERROR_DTYPE);
    CHECK_ABOUT("strain");
    CHECK_SAYS("float64");
    CHECK_SAYS(names[i]);
    neml2_tensor_free(&tensor);

    CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_call_bind(call, NEML2_INPUT, "strain", strain, dtypes[i], 6));
    CHECK_ABOUT("strain");
    CHECK_SAYS("float64");
    CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, dtypes[i], 6));
    CHECK_ABOUT("stress");
  }
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_call_bind(call, NEML2_INPUT, "strain", strain, 99, 6));
  CHECK_OK(neml2_call_run(call, 2));
  neml2_call_free(&call);
  CHECK_ELASTICITY(elasticity);
}

static void wrong_point_stride(neml2_model *elasticity) {
  double strain[2][6], stress[2][6];
  some_strains(2, strain[0]);
  neml2_call *call = elasticity_call(elasticity, strain[0], stress[0]);
  /* Points that overlap cannot be written. */
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 5));
  CHECK_ABOUT("stress");
  CHECK_SAYS("6");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, -1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_bind_report(call, 99, stress, 1));
  CHECK_OK(neml2_call_run(call, 2));
  neml2_call_free(&call);
  CHECK_ELASTICITY(elasticity);
}

/* Two strains and three times. */
static void incompatible_batches(neml2_model *viscoplastic) {
  double values[3 * 6] = {0};
  const int64_t two[2] = {2, 6}, three[1] = {3};
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS] = {NULL}, *outputs[VISCOPLASTIC_OUTPUTS] = {NULL};
  for (int64_t i = 0; i < VISCOPLASTIC_INPUTS; ++i) {
    const char *name = NULL, *type = NULL;
    name = variable_info(viscoplastic, NEML2_INPUT, i).name;
    type = variable_info(viscoplastic, NEML2_INPUT, i).type;
    if (strcmp(name, "t") == 0)
      inputs[i] = tensor_over(values, 1, three);
    else if (strcmp(type, "Scalar") == 0)
      inputs[i] = tensor_over(values, 1, two);
    else
      inputs[i] = tensor_over(values, 2, two);
  }
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_model_forward(outputs, NULL, viscoplastic, inputs, NULL));
  CHECK_SAYS("'t'");
  CHECK_SAYS("2");
  CHECK_SAYS("3");
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) CHECK(outputs[i] == NULL);
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&inputs[i]);
}

/* An explicit model passes NaN on, in that point only. */
static void nan_in_an_explicit_model(neml2_model *elasticity) {
  double strain[3][6], stress[3][6], expected[3][6];
  int32_t status[3];
  some_strains(3, strain[0]);
  hooke(3, YOUNG, strain[0], expected[0]);
  strain[1][0] = NAN;
  neml2_call *call = elasticity_call(elasticity, strain[0], stress[0]);
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, status, 1));
  CHECK_STATUS(NEML2_NON_FINITE, neml2_call_run(call, 3));
  CHECK(status[0] == NEML2_OK && status[1] == NEML2_NON_FINITE && status[2] == NEML2_OK);
  CHECK(isnan(stress[1][0]) && isnan(stress[1][1]));
  CHECK_NEAR(6, stress[0], expected[0], 1e-12);
  CHECK_NEAR(6, stress[2], expected[2], 1e-12);
  neml2_call_free(&call);

  const int64_t shape[2] = {3, 6};
  neml2_tensor *input = tensor_over(strain[0], 2, shape), *output = NULL;
  CHECK_STATUS(NEML2_NON_FINITE, neml2_model_forward(&output, NULL, elasticity, &input, NULL));
  CHECK(output != NULL && isnan(tensor_values(output)[6]));
  neml2_tensor_free(&output);
  neml2_tensor_free(&input);
  CHECK_ELASTICITY(elasticity);
}

/* An implicit model does not converge at a point of NaN, and its neighbours do. */
static void nan_in_an_implicit_model(neml2_model *viscoplastic) {
  viscoplastic_block b = viscoplastic_create(3), good = viscoplastic_create(3);
  neml2_call *call = viscoplastic_call(viscoplastic, &b, 0), *good_call = viscoplastic_call(viscoplastic, &good, 0);
  viscoplastic_load(&b, 5);
  viscoplastic_load(&good, 5);
  CHECK_OK(neml2_call_run(good_call, 3));
  b.strain[6] = 1e200;
  CHECK(neml2_call_run(call, 3) >= NEML2_NOT_CONVERGED);
  CHECK(b.status[0] == NEML2_OK && b.status[1] >= NEML2_NOT_CONVERGED && b.status[2] == NEML2_OK);
  for (int i = 0; i < STATE_SIZE; ++i) CHECK(b.state[STATE_SIZE + i] == 0); /* not written */
  CHECK_SAME(STATE_SIZE, b.state, good.state);
  CHECK_SAME(STATE_SIZE, b.state + 2 * STATE_SIZE, good.state + 2 * STATE_SIZE);
  neml2_call_free(&call);
  neml2_call_free(&good_call);
  viscoplastic_free(&b);
  viscoplastic_free(&good);
}

static void not_contiguous(neml2_model *elasticity) {
  double wide[3][2][6], expected[3][6];
  const int64_t shape[2] = {3, 6}, strides[2] = {12, 1};
  neml2_tensor *input = NULL, *output = NULL;
  memset(wide, 0xff, sizeof wide);
  for (int p = 0; p < 3; ++p) {
    some_strains(1, wide[p][0]);
    hooke(1, YOUNG, wide[p][0], expected[p]);
  }
  REQUIRE_OK(neml2_tensor_wrap(&input, wide, NEML2_FLOAT64, 2, shape, strides, NULL, NULL));
  if (CHECK_OK(neml2_model_forward(&output, NULL, elasticity, &input, NULL)))
    CHECK_NEAR(18, tensor_values(output), expected[0], 1e-12);
  neml2_tensor_free(&output);
  neml2_tensor_free(&input);
}

/* What was freed is NULL, and NULL is an error. A call outlives the handle of its model. */
static void closed_handles(const char *root) {
  double strain[6], stress[6], expected[6];
  neml2_model *model = load(root);
  some_strains(1, strain);
  hooke(1, YOUNG, strain, expected);
  neml2_call *call = elasticity_call(model, strain, stress), *another = NULL;
  neml2_model_free(&model);
  neml2_model_free(&model);
  CHECK(model == NULL);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_create(&another, model));
  CHECK(another == NULL);
  CHECK_OK(neml2_call_run(call, 1));
  CHECK_NEAR(6, stress, expected, 1e-12);
  neml2_call_free(&call);
  neml2_call_free(&call);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, 1));
}

static void errors_are_kept_in_full(neml2_model *elasticity) {
  char name[600], small[8];
  int64_t needed = 0;
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_variable_find(&needed, elasticity, NEML2_INPUT, name));
  CHECK_OK(neml2_error_message(NULL, 0, &needed));
  CHECK(needed == (int64_t)strlen(check_message()) + 1);
  CHECK_OK(neml2_error_message(small, sizeof small, NULL));
  CHECK(strlen(small) == sizeof small - 1);
  CHECK(neml2_error_status() == NEML2_ERROR_NAME);
}

static void a_message_is_cut_between_characters(neml2_model *elasticity) {
  char whole[200], part[200];
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_variable_find(&(int64_t){0}, elasticity, NEML2_INPUT,
                                                           "\xce\xb5\xe2\x82\x99\xf0\x9d\x9c\x80"));
  CHECK_OK(neml2_error_message(whole, sizeof whole, NULL));
  const size_t begin = (size_t)(strchr(whole, '\xce') - whole), ends[] = {0, 0, 2, 2, 2, 5, 5, 5, 5, 9};
  for (size_t length = 0; length < sizeof ends / sizeof *ends; ++length) {
    CHECK_OK(neml2_error_message(part, (int64_t)(begin + length + 1), NULL));
    CHECK(strlen(part) == begin + ends[length] && strncmp(part, whole, strlen(part)) == 0);
  }
}

int main(void) {
  neml2_model *elasticity = load(artifact("elasticity")), *viscoplastic = load(artifact("viscoplastic"));
  missing_input(elasticity, viscoplastic);
  unknown_input(elasticity);
  wrong_trailing_shape(elasticity);
  wrong_dtype(elasticity);
  wrong_point_stride(elasticity);
  incompatible_batches(viscoplastic);
  nan_in_an_explicit_model(elasticity);
  nan_in_an_implicit_model(viscoplastic);
  not_contiguous(elasticity);
  closed_handles(artifact("elasticity"));
  errors_are_kept_in_full(elasticity);
  a_message_is_cut_between_characters(elasticity);
  CHECK_ELASTICITY(elasticity);
  neml2_model_free(&elasticity);
  neml2_model_free(&viscoplastic);
  return CHECK_RESULT();
}
