/* A call that is run again keeps what it found the first time: whatever changes in between must be seen. */
#include "materials.h"

#define E "elasticity.E"
enum { N = 5 };

static double strain[N][6], stress[N][6], other[N][6];
static neml2_model *model;
static neml2_call *call;

/* Run for `n` points, and compare with Hooke's law of this modulus; no point behind them is written. */
static void expect(int line, int64_t n, double young) {
  double expected[N][6];
  for (int p = 0; p < N; ++p)
    for (int i = 0; i < 6; ++i) stress[p][i] = expected[p][i] = -1;
  hooke(n, young, strain[0], expected[0]);
  check_status(__FILE__, line, "run", NEML2_OK, neml2_call_run(call, n));
  check_near(__FILE__, line, "stress", 6 * N, stress[0], expected[0], 1e-12);
}
#define EXPECT(n, young) expect(__LINE__, n, young)
#define EXPECT_TWICE(n, young) (EXPECT(n, young), EXPECT(n, young))

static void bind(double *input, double *output) {
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", input, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", output, NEML2_FLOAT64, 6));
}

static void set_young(double value) {
  neml2_tensor *tensor = tensor_over(&value, 0, NULL);
  CHECK_OK(neml2_model_parameter_set(model, E, tensor));
  neml2_tensor_free(&tensor);
}

static void numbers_of_points(void) {
  EXPECT_TWICE(N, YOUNG);
  EXPECT_TWICE(1, YOUNG);
  EXPECT_TWICE(3, YOUNG);
  CHECK_OK(neml2_call_run(call, 0));
  EXPECT(3, YOUNG);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, -1));
  EXPECT_TWICE(3, YOUNG);
}

static void values_of_the_arrays(void) {
  strain[0][2] += 1e-4;
  EXPECT_TWICE(N, YOUNG);
  strain[0][2] -= 1e-4;
  EXPECT(N, YOUNG);
}

static void parameters(void) {
  neml2_tensor *young = NULL, *values = NULL, *two = NULL;
  const double moduli[N] = {1e3, 2e3, 3e3, 4e3, 5e3};
  const int64_t n = N, fewer = 2;
  EXPECT(N, YOUNG);
  set_young(50e3);
  EXPECT_TWICE(N, 50e3);
  REQUIRE_OK(neml2_model_parameter_get(&young, model, E));
  *tensor_values(young) = 70e3;
  EXPECT_TWICE(N, 70e3);
  neml2_tensor_free(&young);

  values = tensor_over(moduli, 1, &n);
  two = tensor_over(moduli, 1, &fewer);
  CHECK_OK(neml2_model_parameter_set(model, E, values));
  for (int again = 0; again < 2; ++again) {
    CHECK_OK(neml2_call_run(call, N));
    for (int p = 0; p < N; ++p) {
      double expected[6];
      hooke(1, moduli[p], strain[p], expected);
      CHECK_NEAR(6, stress[p], expected, 1e-12);
    }
  }
  /* Refused, and seen again afterwards. */
  CHECK_OK(neml2_model_parameter_set(model, E, two));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_run(call, N));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_run(call, N));
  neml2_tensor_free(&values);
  neml2_tensor_free(&two);
  set_young(YOUNG);
  EXPECT_TWICE(N, YOUNG);
}

static void a_parameter_of_the_call(void) {
  double young = 10e3;
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, E, &young, NEML2_FLOAT64, 0));
  EXPECT_TWICE(1, 10e3);
  EXPECT_TWICE(N, 10e3);
  young = 20e3;
  EXPECT_TWICE(N, 20e3);
  EXPECT_TWICE(1, 20e3);
  young = 30e3;
  EXPECT(1, 30e3);
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, E, NULL, NEML2_FLOAT64, 0));
  EXPECT_TWICE(1, YOUNG);
}

static void bindings(void) {
  static double wide[N][7];
  EXPECT_TWICE(N, YOUNG);
  bind(strain[0], other[0]);
  CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(6 * N, other[0], stress[0], 0);
  bind(strain[0], stress[0]);
  EXPECT_TWICE(N, YOUNG);

  /* Columns of a wider array: read where they are for one point, gathered for more. */
  for (int p = 0; p < N; ++p) memcpy(wide[p], strain[p], sizeof strain[p]);
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", wide, NEML2_FLOAT64, 7));
  EXPECT_TWICE(1, YOUNG);
  EXPECT_TWICE(N, YOUNG);

  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", NULL, NEML2_FLOAT64, 6));
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_call_run(call, N));
  bind(strain[0], stress[0]);
  EXPECT_TWICE(N, YOUNG);
}

static void in_place(void) {
  static double expected[N][6], values[N][6];
  bind(values[0], values[0]);
  for (int again = 0; again < 3; ++again) {
    memcpy(values, strain, sizeof values);
    hooke(N, YOUNG, strain[0], expected[0]);
    CHECK_OK(neml2_call_run(call, N));
    CHECK_NEAR(6 * N, values[0], expected[0], 1e-12);
  }
  bind(strain[0], stress[0]);
}

static void options(void) {
  EXPECT(N, YOUNG);
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 2));
  EXPECT_TWICE(N, YOUNG);
  CHECK_OK(neml2_model_option_set_number(model, "threads", 2));
  EXPECT_TWICE(N, YOUNG);
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 0));
  EXPECT_TWICE(N, YOUNG);
  EXPECT_TWICE(N, YOUNG);
  CHECK_OK(neml2_model_option_set_number(model, "threads", 1));
}

static void statuses(void) {
  int32_t status[N] = {9, 9, 9, 9, 9};
  EXPECT(N, YOUNG);
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, status, 1));
  EXPECT_TWICE(N, YOUNG);
  for (int p = 0; p < N; ++p) CHECK(status[p] == NEML2_OK);
  const double kept = strain[3][0];
  strain[3][0] = INFINITY;
  CHECK_STATUS(NEML2_NON_FINITE, neml2_call_run(call, N));
  CHECK_STATUS(NEML2_NON_FINITE, neml2_call_run(call, N));
  for (int p = 0; p < N; ++p) CHECK(status[p] == (p == 3 ? NEML2_NON_FINITE : NEML2_OK));
  strain[3][0] = kept;
  EXPECT(N, YOUNG);
  CHECK(status[3] == NEML2_OK);
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, NULL, 1));
}

/* One strain for all points, which is another one at the next call. */
static void one_value_of_an_input(void) {
  double one[6], expected[N][6];
  memcpy(one, strain[1], sizeof one);
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", one, NEML2_FLOAT64, 0));
  for (int again = 0; again < 4; ++again) {
    if (again == 2) memcpy(one, strain[2], sizeof one);
    for (int p = 0; p < N; ++p) hooke(1, YOUNG, one, expected[p]);
    CHECK_OK(neml2_call_run(call, N));
    CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);
  }
  bind(strain[0], stress[0]);
}

int main(void) {
  model = load(artifact("elasticity"));
  REQUIRE_OK(neml2_call_create(&call, model));
  some_strains(N, strain[0]);
  bind(strain[0], stress[0]);
  numbers_of_points();
  values_of_the_arrays();
  parameters();
  a_parameter_of_the_call();
  bindings();
  in_place();
  options();
  statuses();
  one_value_of_an_input();
  neml2_call_free(&call);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
