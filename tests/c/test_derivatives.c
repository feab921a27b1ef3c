/* The derivatives of elasticity, through tensors and through calls, agree with Hooke's law. */
#include "materials.h"

enum { N = 7 };

/* d stress / d strain, row by row. */
static void hooke_stiffness(double young, double *stiffness) {
  for (int j = 0; j < 6; ++j) {
    double unit[6] = {0}, column[6];
    unit[j] = 1;
    hooke(1, young, unit, column);
    for (int i = 0; i < 6; ++i) stiffness[6 * i + j] = column[i];
  }
}

/* Six distinct values at each point, unlike the strains. */
static void some_directions(int64_t n, double *values) {
  for (int64_t i = 0; i < 6 * n; ++i) values[i] = sin(1 + 0.7 * (double)i);
}

static neml2_call *call_over(const neml2_model *model, double *strain) {
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  return call;
}

static void check_shape(const neml2_tensor *tensor, int64_t ndim, const int64_t *expected) {
  int64_t axes = -1;
  const int64_t *shape = NULL;
  axes = tensor_info(tensor).ndim;
  shape = tensor_info(tensor).shape;
  CHECK(axes == ndim);
  if (axes == ndim) CHECK_SAME(ndim, shape, expected);
}

/* Over tensors of shape (*batch, 6). */
static void tensors_match_closed_form(const neml2_model *model, int64_t nbatch, const int64_t *batch) {
  int64_t shape[6], n = 1;
  for (int64_t i = 0; i < nbatch; ++i) n *= shape[i] = batch[i];
  shape[nbatch] = shape[nbatch + 1] = 6;
  double *strain = doubles(6 * n), *stress = doubles(6 * n), *direction = doubles(6 * n), *product = doubles(6 * n);
  double stiffness[36];
  some_strains(n, strain);
  some_directions(n, direction);
  hooke(n, YOUNG, strain, stress);
  hooke(n, YOUNG, direction, product); /* the stiffness is symmetric */
  hooke_stiffness(YOUNG, stiffness);

  neml2_tensor *input = tensor_over(strain, nbatch + 1, shape), *along = tensor_over(direction, nbatch + 1, shape);
  neml2_tensor *output = NULL, *result = NULL, *status = NULL;
  neml2_report *report = NULL;
  if (CHECK_OK(neml2_model_jacobian(&output, &result, &report, model, NEML2_INPUT, &input, NULL))) {
    check_shape(output, nbatch + 1, shape);
    check_shape(result, nbatch + 2, shape);
    CHECK_NEAR(6 * n, tensor_values(output), stress, 1e-12);
    for (int64_t p = 0; p < n; ++p) CHECK_NEAR(36, tensor_values(result) + 36 * p, stiffness, 1e-12);
    REQUIRE_OK(neml2_report_get(&status, report, NEML2_REPORT_STATUS));
    check_shape(status, nbatch, shape);
    neml2_tensor_free(&status);
  }
  neml2_tensor_free(&output);
  neml2_tensor_free(&result);
  neml2_report_free(&report);
  if (CHECK_OK(neml2_model_jvp(NULL, &result, NULL, model, &input, &along, NULL))) {
    check_shape(result, nbatch + 1, shape);
    CHECK_NEAR(6 * n, tensor_values(result), product, 1e-12);
  }
  neml2_tensor_free(&result);
  if (CHECK_OK(neml2_model_vjp(&output, &result, NULL, model, NEML2_INPUT, &input, &along, NULL))) {
    check_shape(result, nbatch + 1, shape);
    CHECK_NEAR(6 * n, tensor_values(output), stress, 1e-12);
    CHECK_NEAR(6 * n, tensor_values(result), product, 1e-12);
  }
  neml2_tensor_free(&output);
  neml2_tensor_free(&result);
  neml2_tensor_free(&input);
  neml2_tensor_free(&along);
  free(strain);
  free(stress);
  free(direction);
  free(product);
}

/* One strain, a tangent and a cotangent per point, a modulus per row: all batches broadcast. */
static void adjoints_have_the_shape_of_their_input(const neml2_model *model) {
  const int64_t two_by_three[3] = {2, 3, 6}, rows[2] = {2, 1}, six = 6;
  double strain[6], direction[6][6], modulus[2] = {100e3, 200e3}, sum[6] = {0}, product[6][6];
  some_strains(1, strain);
  some_directions(6, direction[0]);
  for (int p = 0; p < 6; ++p) {
    hooke(1, modulus[p / 3], direction[p], product[p]);
    for (int i = 0; i < 6; ++i) sum[i] += product[p][i];
  }
  neml2_tensor *input = tensor_over(strain, 1, &six), *along = tensor_over(direction[0], 3, two_by_three);
  neml2_tensor *E = tensor_over(modulus, 2, rows), *output = NULL, *result = NULL;
  if (CHECK_OK(neml2_model_vjp(&output, &result, NULL, model, NEML2_INPUT, &input, &along, &E))) {
    check_shape(output, 3, two_by_three);
    check_shape(result, 1, &six);
    CHECK_NEAR(6, tensor_values(result), sum, 1e-12);
  }
  neml2_tensor_free(&output);
  neml2_tensor_free(&result);
  if (CHECK_OK(neml2_model_jvp(NULL, &result, NULL, model, &input, &along, &E))) {
    check_shape(result, 3, two_by_three);
    CHECK_NEAR(36, tensor_values(result), product[0], 1e-12);
  }
  neml2_tensor_free(&result);

  /* What is not given is zero. */
  neml2_tensor *none = NULL;
  const double zeros[6] = {0};
  if (CHECK_OK(neml2_model_jvp(NULL, &result, NULL, model, &input, &none, NULL)))
    CHECK_SAME(6, tensor_values(result), zeros);
  neml2_tensor_free(&result);
  if (CHECK_OK(neml2_model_vjp(NULL, &result, NULL, model, NEML2_INPUT, &input, &none, NULL)))
    CHECK_SAME(6, tensor_values(result), zeros);
  neml2_tensor_free(&result);
  neml2_tensor_free(&input);
  neml2_tensor_free(&along);
  neml2_tensor_free(&E);
}

/* Strain, its stiffness and stress stand in one record of 50 numbers; what lies between them stays. */
static void blocks_interleave(const neml2_model *model) {
  enum { RECORD = 50, BLOCK = 7, STRESS = 43 };
  double record[N][RECORD], strain[N][6], stress[N][6], stiffness[36];
  neml2_call *call = NULL;
  some_strains(N, strain[0]);
  hooke(N, YOUNG, strain[0], stress[0]);
  hooke_stiffness(YOUNG, stiffness);
  for (int p = 0; p < N; ++p) {
    memcpy(record[p], strain[p], sizeof strain[p]);
    for (int i = 6; i < RECORD; ++i) record[p][i] = -1;
  }
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", record[0], NEML2_FLOAT64, RECORD));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", record[0] + STRESS, NEML2_FLOAT64, RECORD));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", record[0] + BLOCK, NEML2_FLOAT64, RECORD));
  CHECK_OK(neml2_call_run(call, N));
  for (int p = 0; p < N; ++p) {
    CHECK_SAME(6, record[p], strain[p]);
    CHECK_NEAR(36, record[p] + BLOCK, stiffness, 1e-12);
    CHECK_NEAR(6, record[p] + STRESS, stress[p], 1e-12);
    CHECK(record[p][6] == -1 && record[p][RECORD - 1] == -1);
  }
  neml2_call_free(&call);
}

static void stride_zero_is_one_direction_or_a_sum(const neml2_model *model) {
  double strain[N][6], direction[N][6], product[N][6], one[6], sum[6], expected[6] = {0}, jvp[N][6];
  some_strains(N, strain[0]);
  some_directions(N, direction[0]);
  hooke(N, YOUNG, direction[0], product[0]);
  neml2_call *call = call_over(model, strain[0]);
  CHECK_OK(neml2_call_bind(call, NEML2_COTANGENT, "stress", direction, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, "strain", sum, NEML2_FLOAT64, 0));
  for (int p = 0; p < N; ++p)
    for (int i = 0; i < 6; ++i) expected[i] += product[p][i];
  for (int again = 0; again < 2; ++again) { /* a sum begins at zero */
    CHECK_OK(neml2_call_run(call, N));
    CHECK_NEAR(6, sum, expected, 1e-12);
  }
  CHECK_OK(neml2_call_run(call, 0));
  CHECK_NEAR(6, sum, expected, 1e-12);

  memcpy(one, direction[0], sizeof one);
  CHECK_OK(neml2_call_bind(call, NEML2_TANGENT, "strain", one, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", jvp, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_COTANGENT, "stress", one, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_run(call, N));
  for (int i = 0; i < 6; ++i) expected[i] = (double)N * product[0][i];
  CHECK_NEAR(6, sum, expected, 1e-12);
  for (int p = 0; p < N; ++p) CHECK_NEAR(6, jvp[p], product[0], 1e-12);
  neml2_call_free(&call);
}

/* Whatever the size of the chunks, sums too. */
static void one_run_gives_what_separate_runs_give(neml2_model *model) {
  enum { KINDS = 4, POINTS = 1000 };
  const int64_t sizes[KINDS] = {6, 36, 6, 6};
  double *strain = doubles(6 * POINTS), *direction = doubles(6 * POINTS), *all[KINDS], *each[KINDS];
  double sum[2][6], chunk = 0;
  int32_t status[POINTS];
  some_strains(POINTS, strain);
  some_directions(POINTS, direction);
  for (int k = 0; k < KINDS; ++k) all[k] = doubles(sizes[k] * POINTS), each[k] = doubles(sizes[k] * POINTS);
  CHECK_OK(neml2_model_option_get_number(&chunk, model, "chunk"));
  for (int only = -1; only < KINDS; ++only) {
    neml2_call *call = call_over(model, strain);
    double **to = only < 0 ? all : each;
    CHECK_OK(neml2_call_bind(call, NEML2_TANGENT, "strain", direction, NEML2_FLOAT64, 6));
    CHECK_OK(neml2_call_bind(call, NEML2_COTANGENT, "stress", direction, NEML2_FLOAT64, 6));
    if (only < 0 || only == 0) CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", to[0], NEML2_FLOAT64, 6));
    if (only < 0 || only == 1)
      CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", to[1], NEML2_FLOAT64, 36));
    if (only < 0 || only == 2) CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", to[2], NEML2_FLOAT64, 6));
    if (only < 0 || only == 3) CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, "strain", to[3], NEML2_FLOAT64, 6));
    if (only < 0) CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, status, 1));
    CHECK_OK(neml2_call_run(call, POINTS));
    if (only == 3)
      for (int k = 0; k < 2; ++k) {
        CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, "strain", sum[k], NEML2_FLOAT64, 0));
        CHECK_OK(neml2_model_option_set_number(model, "chunk", k ? 7 : chunk));
        CHECK_OK(neml2_call_run(call, POINTS));
      }
    neml2_call_free(&call);
  }
  CHECK_OK(neml2_model_option_set_number(model, "chunk", chunk));
  CHECK_SAME(6, sum[0], sum[1]);
  CHECK_NEAR(6 * POINTS, each[0], all[0], 1e-15); /* the package of the derivatives gives the stress, too */
  for (int k = 1; k < KINDS; ++k) CHECK_SAME(sizes[k] * POINTS, each[k], all[k]);
  for (int p = 0; p < POINTS; ++p) CHECK(status[p] == NEML2_OK);
  for (int k = 0; k < KINDS; ++k) free(all[k]), free(each[k]);
  free(strain);
  free(direction);
}

static void what_is_not_bound_is_not_written(const neml2_model *model) {
  double strain[N][6], block[36 * N], jvp[6 * N], adjoint[6];
  some_strains(N, strain[0]);
  for (int i = 0; i < 36 * N; ++i) block[i] = -1;
  for (int i = 0; i < 6; ++i) adjoint[i] = -1;
  neml2_call *call = call_over(model, strain[0]);
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", block, NEML2_FLOAT64, 36));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", NULL, NEML2_FLOAT64, 36));
  CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, "strain", adjoint, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, "strain", NULL, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", jvp, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_TANGENT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_TANGENT, "strain", NULL, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, N));
  for (int i = 0; i < 36 * N; ++i) CHECK(block[i] == -1);
  for (int i = 0; i < 6 * N; ++i) CHECK(jvp[i] == 0); /* along no tangent */
  CHECK(adjoint[0] == -1 && adjoint[5] == -1);
  neml2_call_free(&call);
}

/* The run is refused, and says which two arrays; bound apart, it is not. */
static void check_overlap(neml2_call *call, const char *one, const char *other) {
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, N));
  CHECK_SAYS(one);
  CHECK_SAYS(other);
}

static void arrays_that_would_be_spoilt_are_refused(const neml2_model *model) {
  /* Derivatives that begin at a strain or a direction end in its own array. */
  double strain[6 * N][6], direction[6 * N][6], stress[N][6], blocks[2 * 36 * N], jvp[N][6];
  some_strains(N, strain[0]);
  some_directions(N, direction[0]);
  neml2_call *call = call_over(model, strain[0]);
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_TANGENT, "strain", direction, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_COTANGENT, "stress", direction, NEML2_FLOAT64, 6)); /* both are only read */

  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", strain, NEML2_FLOAT64, 36));
  check_overlap(call, "the derivative 'stress:strain'", "the input 'strain'");
  CHECK_ABOUT("stress:strain");
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", direction, NEML2_FLOAT64, 36));
  check_overlap(call, "the derivative 'stress:strain'", "the tangent of 'strain'");
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", blocks, NEML2_FLOAT64, 36));
  CHECK_OK(neml2_call_run(call, N));

  CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", direction, NEML2_FLOAT64, 6)); /* the very array, but no output */
  check_overlap(call, "the jvp of 'stress'", "the tangent of 'strain'");
  CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", strain, NEML2_FLOAT64, 6));
  check_overlap(call, "the jvp of 'stress'", "the input 'strain'");
  CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", stress, NEML2_FLOAT64, 6));
  check_overlap(call, "the jvp of 'stress'", "the output 'stress'");
  CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", jvp, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, N));

  CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, "strain", blocks + 36 * N - 6, NEML2_FLOAT64, 0));
  check_overlap(call, "the adjoint of 'strain'", "the derivative 'stress:strain'");
  CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, "strain", blocks + 36 * N, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_SUGGESTED_CUT, jvp, 1));
  check_overlap(call, "the report 'suggested cut'", "the jvp of 'stress'");
  neml2_call_free(&call);
}

/* After each of these the call is what it was. */
static void wrong_bindings_are_refused(const neml2_model *model) {
  double strain[N][6], block[N][36], stiffness[36], values[6] = {0};
  some_strains(N, strain[0]);
  hooke_stiffness(YOUNG, stiffness);
  neml2_call *call = call_over(model, strain[0]);
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", block, NEML2_FLOAT64, 36));

  CHECK_STATUS(NEML2_ERROR_SHAPE,
               neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", values, NEML2_FLOAT64, 35));
  CHECK_ABOUT("stress:strain");
  CHECK_SAYS("36");
  CHECK_STATUS(NEML2_ERROR_SHAPE,
               neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", values, NEML2_FLOAT64, 0));
  CHECK_STATUS(NEML2_ERROR_DTYPE,
               neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", values, NEML2_FLOAT32, 36));
  CHECK_SAYS("float64");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_call_bind_derivative(call, NEML2_OUTPUT, "stress", "strain", values, NEML2_FLOAT64, 36));
  CHECK_ABOUT("kind");
  CHECK_STATUS(NEML2_ERROR_NAME,
               neml2_call_bind_derivative(call, NEML2_INPUT, "strain", "strain", values, NEML2_FLOAT64, 36));
  CHECK_STATUS(NEML2_ERROR_NAME,
               neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "stress", values, NEML2_FLOAT64, 36));
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_call_bind_derivative(call, NEML2_PARAMETER, "stress", "elasticity.E", values, NEML2_FLOAT64, 6));
  CHECK_SAYS("-d stress:elasticity.E");
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_call_bind(call, NEML2_PARAMETER_ADJOINT, "elasticity.E", values, NEML2_FLOAT64, 0));
  CHECK_SAYS("-d OUTPUT:elasticity.E");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_bind(call, NEML2_UNKNOWN, "strain", values, NEML2_FLOAT64, 6));
  CHECK_ABOUT("role");
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_ADJOINT, "stress", values, NEML2_FLOAT64, 6));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_bind(call, NEML2_ADJOINT, "strain", values, NEML2_FLOAT64, 5));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_TANGENT, "stress", values, NEML2_FLOAT64, 6));
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_call_bind(call, NEML2_TANGENT, "strain", values, NEML2_INT64, 6));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_bind(call, NEML2_TANGENT, "strain", values, NEML2_FLOAT64, -6));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_JVP, "strain", values, NEML2_FLOAT64, 6));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_bind(call, NEML2_JVP, "stress", values, NEML2_FLOAT64, 0));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_COTANGENT, "strain", values, NEML2_FLOAT64, 6));
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_call_bind(call, NEML2_COTANGENT, "stress", values, 99, 6));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_block_order_set(call, 2));
  CHECK_ABOUT("order");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_bind_report(call, 99, values, 1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_bind_report(call, -1, values, 1));

  CHECK_OK(neml2_call_run(call, N));
  for (int p = 0; p < N; ++p) CHECK_NEAR(36, block[p], stiffness, 1e-12);
  for (int i = 0; i < 6; ++i) CHECK(values[i] == 0);
  neml2_call_free(&call);
  CHECK_ELASTICITY(model);
}

static void wrong_tensors_are_refused(const neml2_model *model) {
  double values[36] = {0};
  const int64_t shape[2] = {3, 6}, other[2] = {2, 6}, short_shape[2] = {3, 5};
  neml2_tensor *strain = tensor_over(values, 2, shape), *along = tensor_over(values, 2, other), *result = NULL;
  neml2_tensor *narrow = tensor_over(values, 2, short_shape), *single = NULL, *none = NULL;
  REQUIRE_OK(neml2_tensor_wrap(&single, values, NEML2_FLOAT32, 2, shape, NULL, NULL, NULL));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_model_jvp(NULL, &result, NULL, model, &strain, &along, NULL));
  CHECK_SAYS("tangent of 'strain'");
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_model_vjp(NULL, &result, NULL, model, NEML2_INPUT, &strain, &narrow, NULL));
  CHECK_SAYS("cotangent of 'stress'");
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_model_jvp(NULL, &result, NULL, model, &strain, &single, NULL));
  CHECK_ABOUT("strain");
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_model_jacobian(NULL, &result, NULL, model, NEML2_INPUT, &none, NULL));
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_model_jacobian(NULL, &result, NULL, model, NEML2_PARAMETER, &strain, NULL));
  CHECK_SAYS("-p PARAMETER -d OUTPUT:PARAMETER");
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_model_vjp(NULL, &result, NULL, model, NEML2_PARAMETER, &strain, &strain, NULL));
  CHECK(result == NULL);
  neml2_tensor_free(&strain);
  neml2_tensor_free(&along);
  neml2_tensor_free(&narrow);
  neml2_tensor_free(&single);
  CHECK_ELASTICITY(model);
}

/* A model that was compiled without derivatives says which flag adds them. */
static void absent_derivatives_are_refused(const neml2_model *model) {
  double values[36] = {0};
  int64_t count = -1, index = -1;
  neml2_tensor *tensors[VISCOPLASTIC_INPUTS] = {NULL}, *results[VISCOPLASTIC_INPUTS] = {NULL};
  neml2_call *call = NULL;
  CHECK_OK(neml2_model_derivative_count(&count, model, NEML2_INPUT));
  CHECK(count == 0);
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED, neml2_model_jvp(NULL, results, NULL, model, tensors, tensors, NULL));
  CHECK_SAYS("-d OUTPUT:INPUT");
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_model_vjp(NULL, results, NULL, model, NEML2_INPUT, tensors, tensors, NULL));
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED, neml2_model_jacobian(NULL, results, NULL, model, NEML2_INPUT, tensors, NULL));
  CHECK_SAYS("-d OUTPUT:INPUT");
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", values, NEML2_FLOAT64, 36));
  CHECK_SAYS("-d stress:strain");
  CHECK_ABOUT("stress:strain");
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED, neml2_call_bind(call, NEML2_JVP, "stress", values, NEML2_FLOAT64, 6));
  CHECK_SAYS("-d stress:INPUT");
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED, neml2_call_bind(call, NEML2_ADJOINT, "strain", values, NEML2_FLOAT64, 6));
  CHECK_SAYS("-d OUTPUT:strain");
  neml2_call_free(&call);

  /* Its history: each state variable from its own output, the forces from themselves. */
  CHECK_OK(neml2_model_history_count(&count, model));
  CHECK(count == 6);
  for (int64_t i = 0; i < count; ++i) {
    int64_t input = -1, age = -1, output = -2, current = -2, expected = -1;
    const char *name = "";
    char base[64];
    input = history_info(model, i).input;
    age = history_info(model, i).age;
    output = history_info(model, i).output;
    current = history_info(model, i).current;
    name = variable_info(model, NEML2_INPUT, input).name;
    snprintf(base, sizeof base, "%.*s", (int)strcspn(name, "~"), name);
    CHECK(age == 1 && strcmp(strchr(name, '~'), "~1") == 0);
    const int force = strcmp(base, "t") == 0 || strcmp(base, "strain") == 0;
    CHECK_OK(neml2_model_variable_find(&expected, model, force ? NEML2_INPUT : NEML2_OUTPUT, base));
    CHECK((force ? current : output) == expected && (force ? output : current) == -1);
  }
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_history_inspect(INFO(neml2_history_info), model, 6));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_history_inspect(INFO(neml2_history_info), model, -1));
  CHECK(index == -1);
  CHECK_OK(neml2_model_history_inspect(INFO(neml2_history_info), model, 0));
}

static void derivatives_are_listed(const neml2_model *model) {
  int64_t count = -1, output = -1, variable = -1, ndim = -1;
  const int64_t *shape = NULL, expected[2] = {6, 6};
  int32_t batched = -1;
  CHECK_OK(neml2_model_derivative_count(&count, model, NEML2_INPUT));
  CHECK(count == 1);
  CHECK_OK(neml2_model_derivative_count(&count, model, NEML2_PARAMETER));
  CHECK(count == 0);
  output = derivative_info(model, NEML2_INPUT, 0).output;
  variable = derivative_info(model, NEML2_INPUT, 0).variable;
  batched = derivative_info(model, NEML2_INPUT, 0).batched;
  ndim = derivative_info(model, NEML2_INPUT, 0).ndim;
  shape = derivative_info(model, NEML2_INPUT, 0).shape;
  CHECK(output == 0 && variable == 0 && (batched == 0 || batched == 1) && ndim == 2);
  if (ndim == 2) CHECK_SAME(2, shape, expected);
  CHECK_OK(neml2_model_derivative_inspect(INFO(neml2_derivative_info), model, NEML2_INPUT, 0));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_derivative_count(&count, model, NEML2_OUTPUT));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_model_derivative_inspect(INFO(neml2_derivative_info), model, NEML2_INPUT, 1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_model_derivative_inspect(INFO(neml2_derivative_info), model, NEML2_PARAMETER, 0));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_model_derivative_inspect(INFO(neml2_derivative_info), model, NEML2_UNKNOWN, 0));
  CHECK_OK(neml2_model_history_count(&count, model));
  CHECK(count == 0);
  CHECK_OK(neml2_model_variable_count(&count, model, NEML2_UNKNOWN));
  CHECK(count == 0);
}

/* The same document from the folder and from the model, cut to the buffer. */
static void descriptions_fit_their_buffer(const neml2_model *model, const char *root) {
  int64_t needed = -1, again = -1;
  CHECK_OK(neml2_model_describe(NULL, 0, &needed, model));
  CHECK_OK(neml2_source_describe(NULL, 0, &again, SOURCE(.path = root)));
  CHECK(needed > 100 && again == needed);
  char *text = calloc((size_t)needed + 1, 1), *other = calloc((size_t)needed + 1, 1), part[11];
  if (!text || !other) exit(1);
  text[needed] = '#';
  CHECK_OK(neml2_model_describe(text, needed, NULL, model));
  CHECK_OK(neml2_source_describe(other, needed, NULL,
                                 SOURCE(.path = root, .device = NEML2_DEVICE_CPU, .dtype = NEML2_FLOAT64)));
  CHECK((int64_t)strlen(text) == needed - 1 && text[needed] == '#');
  CHECK(strcmp(text, other) == 0);
  CHECK(text[0] == '{' && strstr(text, "stress") && strstr(text, "elasticity.E"));
  memset(part, '#', sizeof part);
  CHECK_OK(neml2_model_describe(part, 10, &again, model));
  CHECK(again == needed && memcmp(part, text, 9) == 0 && part[9] == '\0' && part[10] == '#');
  part[0] = '#';
  CHECK_OK(neml2_model_describe(part, 0, &again, model));
  CHECK(part[0] == '#');
  CHECK_OK(neml2_model_checksum(other, needed, &again, model));
  CHECK(again == 65 && strspn(other, "0123456789abcdef") == 64);
  again = -1;
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_source_describe(part, 10, &again, SOURCE(.path = "/nonexistent")));
  CHECK(again == -1 && part[0] == '#');
  free(text);
  free(other);
}

static void a_name_may_be_unqualified(const neml2_model *model) {
  double strain[N][6], stress[N][6], expected[N][6], modulus = 100e3;
  int64_t index = -1;
  neml2_tensor *E = NULL;
  CHECK_OK(neml2_model_variable_find(&index, model, NEML2_PARAMETER, "E"));
  CHECK(index == 0);
  CHECK_OK(neml2_model_parameter_get(&E, model, "E"));
  neml2_tensor_free(&E);
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_variable_find(&index, model, NEML2_PARAMETER, "nu"));
  CHECK_SAYS("elasticity.E");
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_variable_find(&index, model, NEML2_PARAMETER, ""));
  some_strains(N, strain[0]);
  hooke(N, modulus, strain[0], expected[0]);
  neml2_call *call = call_over(model, strain[0]);
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, "E", &modulus, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(6 * N, stress[0], expected[0], 1e-12);
  neml2_call_free(&call);
}

/* No point failed: there are no unknowns to tell of, and nothing to cut. */
static void reports_of_good_points(const neml2_model *model) {
  double strain[N][6];
  const int64_t shape[2] = {N, 6};
  neml2_tensor *input = NULL, *output = NULL, *cut = NULL;
  neml2_report *report = NULL;
  some_strains(N, strain[0]);
  input = tensor_over(strain[0], 2, shape);
  REQUIRE_OK(neml2_model_forward(&output, &report, model, &input, NULL));
  if (CHECK_OK(neml2_report_get(&cut, report, NEML2_REPORT_SUGGESTED_CUT)))
    for (int p = 0; p < N; ++p) CHECK(tensor_values(cut)[p] == 1);
  neml2_tensor_free(&cut);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_report_get(&cut, report, 99));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_report_get(&cut, report, -1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_report_get_unknown(&cut, report, 0));
  CHECK(cut == NULL);
  neml2_tensor_free(&input);
  neml2_tensor_free(&output);
  neml2_report_free(&report);
}

int main(void) {
  neml2_model *model = load(artifact("elasticity")), *viscoplastic = load(artifact("viscoplastic"));
  const int64_t sizes[] = {1, 2, 7, 1000, 0}, two_axes[2] = {3, 4}, none_of_three[2] = {3, 0};
  tensors_match_closed_form(model, 0, NULL);
  for (int i = 0; i < 5; ++i) tensors_match_closed_form(model, 1, sizes + i);
  tensors_match_closed_form(model, 2, two_axes);
  tensors_match_closed_form(model, 2, none_of_three);
  adjoints_have_the_shape_of_their_input(model);
  blocks_interleave(model);
  stride_zero_is_one_direction_or_a_sum(model);
  one_run_gives_what_separate_runs_give(model);
  what_is_not_bound_is_not_written(model);
  arrays_that_would_be_spoilt_are_refused(model);
  wrong_bindings_are_refused(model);
  wrong_tensors_are_refused(model);
  absent_derivatives_are_refused(viscoplastic);
  derivatives_are_listed(model);
  descriptions_fit_their_buffer(model, artifact("elasticity"));
  a_name_may_be_unqualified(model);
  reports_of_good_points(model);
  neml2_model_free(&model);
  neml2_model_free(&viscoplastic);
  return CHECK_RESULT();
}
