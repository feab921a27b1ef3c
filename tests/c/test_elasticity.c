/* Elasticity through tensors and through calls equals Hooke's law. */
#include "materials.h"

/* Over a tensor of shape (*batch, 6). */
static void tensors_match_closed_form(const neml2_model *model, int64_t nbatch, const int64_t *batch) {
  int64_t shape[4], n = 1;
  for (int64_t i = 0; i < nbatch; ++i) n *= shape[i] = batch[i];
  shape[nbatch] = 6;
  double *strain = doubles(6 * n), *expected = doubles(6 * n);
  some_strains(n, strain);
  hooke(n, YOUNG, strain, expected);

  neml2_tensor *input = tensor_over(strain, nbatch + 1, shape), *output = NULL;
  if (CHECK_OK(neml2_model_forward(&output, NULL, model, &input, NULL))) {
    int64_t ndim = 0;
    const int64_t *sizes = NULL;
    int32_t dtype = 0;
    ndim = tensor_info(output).ndim;
    sizes = tensor_info(output).shape;
    dtype = tensor_info(output).dtype;
    CHECK(dtype == NEML2_FLOAT64);
    CHECK(ndim == nbatch + 1);
    if (ndim == nbatch + 1) CHECK_SAME(ndim, sizes, shape);
    CHECK_NEAR(6 * n, tensor_values(output), expected, 1e-12);
  }
  neml2_tensor_free(&output);
  neml2_tensor_free(&input);
  free(strain);
  free(expected);
}

static void calls_match_closed_form(const neml2_model *model, int64_t n) {
  double *strain = doubles(6 * n), *stress = doubles(6 * n), *expected = doubles(6 * n);
  neml2_call *call = NULL;
  some_strains(n, strain);
  hooke(n, YOUNG, strain, expected);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, n));
  CHECK_NEAR(6 * n, stress, expected, 1e-12);
  neml2_call_free(&call);
  free(strain);
  free(stress);
  free(expected);
}

/* Strain and stress of a point stand in one record of 14 numbers; what lies between them stays. */
static void variables_interleave(const neml2_model *model) {
  enum { N = 7, RECORD = 14 };
  double record[N][RECORD], strain[N][6], expected[N][6];
  neml2_call *call = NULL;
  some_strains(N, strain[0]);
  hooke(N, YOUNG, strain[0], expected[0]);
  for (int p = 0; p < N; ++p) {
    memcpy(record[p], strain[p], sizeof strain[p]);
    for (int i = 6; i < RECORD; ++i) record[p][i] = -1;
  }
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", record[0], NEML2_FLOAT64, RECORD));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", record[0] + 7, NEML2_FLOAT64, RECORD));
  CHECK_OK(neml2_call_run(call, N));
  for (int p = 0; p < N; ++p) {
    CHECK_SAME(6, record[p], strain[p]);
    CHECK_NEAR(6, record[p] + 7, expected[p], 1e-12);
    CHECK(record[p][6] == -1 && record[p][13] == -1);
  }
  neml2_call_free(&call);
}

static void stride_zero_is_one_value_for_all(const neml2_model *model) {
  double strain[6], stress[5][6], expected[6];
  neml2_call *call = NULL;
  some_strains(1, strain);
  hooke(1, YOUNG, strain, expected);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, 5));
  for (int p = 0; p < 5; ++p) CHECK_NEAR(6, stress[p], expected, 1e-12);
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 0));
  CHECK_ABOUT("stress");
  neml2_call_free(&call);
}

static void output_may_be_the_array_of_an_input(const neml2_model *model) {
  enum { N = 300 };
  double *values = doubles(6 * N), *expected = doubles(6 * N);
  neml2_call *call = NULL;
  some_strains(N, values);
  hooke(N, YOUNG, values, expected);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", values, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", values, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(6 * N, values, expected, 1e-12);
  neml2_call_free(&call);
  free(values);
  free(expected);
}

/* The array stands (6, n), as a host keeps it that loops over points innermost. */
static void other_layouts_are_copied(const neml2_model *model) {
  enum { N = 5 };
  double strain[N][6], transposed[6][N], expected[N][6];
  some_strains(N, strain[0]);
  hooke(N, YOUNG, strain[0], expected[0]);
  for (int p = 0; p < N; ++p)
    for (int i = 0; i < 6; ++i) transposed[i][p] = strain[p][i];

  const int64_t shape[2] = {N, 6}, strides[2] = {1, N};
  neml2_tensor *input = NULL, *output = NULL;
  REQUIRE_OK(neml2_tensor_wrap(&input, transposed, NEML2_FLOAT64, 2, shape, strides, NULL, NULL));
  if (CHECK_OK(neml2_model_forward(&output, NULL, model, &input, NULL)))
    CHECK_NEAR(6 * N, tensor_values(output), expected[0], 1e-12);
  neml2_tensor_free(&output);
  neml2_tensor_free(&input);
}

static void unbound_output_is_not_written(const neml2_model *model) {
  double strain[2][6], stress[2][6] = {{0}};
  neml2_call *call = NULL;
  some_strains(2, strain[0]);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", NULL, NEML2_FLOAT64, 6));
  CHECK(neml2_call_run(call, 2) == NEML2_ERROR_MISSING);
  CHECK_OK(neml2_call_run(call, 0));
  CHECK(stress[0][0] == 0 && stress[1][5] == 0);
  neml2_call_free(&call);
}

static void variables_are_listed(const neml2_model *model) {
  const int32_t kinds[3] = {NEML2_INPUT, NEML2_OUTPUT, NEML2_PARAMETER};
  const char *names[3] = {"strain", "stress", "elasticity.E"}, *types[3] = {"SR2", "SR2", ""};
  const int64_t ndims[3] = {1, 1, 0};
  for (int k = 0; k < 3; ++k) {
    int64_t count = 0, index = -1, ndim = -1, sub_ndim = -1;
    const int64_t *shape = NULL;
    const char *name = "", *type = "";
    int32_t dtype = 0;
    CHECK_OK(neml2_model_variable_count(&count, model, kinds[k]));
    CHECK(count == 1);
    CHECK_OK(neml2_model_variable_find(&index, model, kinds[k], names[k]));
    CHECK(index == 0);
    name = variable_info(model, kinds[k], 0).name;
    type = variable_info(model, kinds[k], 0).type;
    CHECK(strcmp(name, names[k]) == 0 && strcmp(type, types[k]) == 0);
    ndim = variable_info(model, kinds[k], 0).ndim;
    shape = variable_info(model, kinds[k], 0).shape;
    sub_ndim = variable_info(model, kinds[k], 0).sub_ndim;
    CHECK(ndim == ndims[k] && sub_ndim == 0 && (ndim == 0 || shape[0] == 6));
    dtype = variable_info(model, kinds[k], 0).dtype;
    CHECK(dtype == NEML2_FLOAT64);
  }
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_variable_inspect(INFO(neml2_variable_info), model, NEML2_INPUT, 1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_variable_inspect(INFO(neml2_variable_info), model, 7, 0));
}

/* A part of a mesh may be empty, and its arrays NULL. */
static void no_points_need_no_arrays(neml2_model *model) {
  const int64_t four = 4;
  double values[4] = {1e5, 2e5, 3e5, 4e5};
  neml2_tensor *E = NULL, *before = NULL;
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", NULL, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, 0));
  REQUIRE_OK(neml2_tensor_wrap(&E, values, NEML2_FLOAT64, 1, &four, NULL, NULL, NULL));
  REQUIRE_OK(neml2_tensor_create(&before, NEML2_FLOAT64, 0, NULL));
  *tensor_values(before) = 200e3;
  CHECK_OK(neml2_model_parameter_set(model, "elasticity.E", E));
  CHECK_OK(neml2_call_run(call, 0));
  CHECK_OK(neml2_model_parameter_set(model, "elasticity.E", before));
  neml2_tensor_free(&E);
  neml2_tensor_free(&before);
  neml2_call_free(&call);
}

/* One value for all points may lie in the first point's record, beside what is written there. */
static void one_value_may_lie_inside_an_interleaved_array(const neml2_model *model) {
  enum { N = 8, RECORD = 13 };
  double record[N][RECORD] = {{0}}, expected[6];
  const double strain[6] = {1e-3, -3e-4, -3e-4, 2e-4, -1e-4, 5e-5};
  neml2_call *call = NULL;
  memcpy(record[0] + 6, strain, sizeof strain);
  hooke(1, 200e3, strain, expected);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", record[0] + 6, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", record[0], NEML2_FLOAT64, RECORD));
  CHECK_OK(neml2_call_run(call, N));
  for (int p = 0; p < N; ++p) CHECK_NEAR(6, record[p], expected, 1e-12);
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", record[0] + 1, NEML2_FLOAT64, RECORD));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, N));
  neml2_call_free(&call);
}

/* What is written, reports too, lies on nothing else. */
static void arrays_that_would_be_spoilt_are_refused(const neml2_model *model) {
  enum { N = 16 };
  double strain[N][6] = {{0}}, stress[N][6];
  int32_t counts[N];
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_RESIDUAL_NORM, stress, 6));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, N));
  CHECK_SAYS("residual norm");
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_RESIDUAL_NORM, strain, 6));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, N));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_RESIDUAL_NORM, NULL, 1));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, counts, 1));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_ITERATIONS, counts, 1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, N));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_ITERATIONS, NULL, 1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, INT64_MAX));
  CHECK_SAYS("strain");
  CHECK_OK(neml2_call_run(call, N));
  neml2_call_free(&call);
}

/* Two batches that are small in memory, thanks to strides of 0, broadcast to more points than can be counted. */
static void a_batch_beyond_any_memory_is_refused(const neml2_model *model) {
  double value[6] = {0};
  const int64_t rows[3] = {(int64_t)1 << 40, 1, 6}, columns[2] = {1, (int64_t)1 << 40}, still[3] = {0, 0, 1};
  neml2_tensor *strain = NULL, *E = NULL, *stress = NULL;
  REQUIRE_OK(neml2_tensor_wrap(&strain, value, NEML2_FLOAT64, 3, rows, still, NULL, NULL));
  REQUIRE_OK(neml2_tensor_wrap(&E, value, NEML2_FLOAT64, 2, columns, still, NULL, NULL));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_model_forward(&stress, NULL, model, &strain, &E));
  CHECK(stress == NULL);
  neml2_tensor_free(&strain);
  neml2_tensor_free(&E);
}

int main(void) {
  neml2_model *model = load(artifact("elasticity"));

  const int64_t sizes[] = {1, 2, 7, 1000, 1000000, 0};
  tensors_match_closed_form(model, 0, NULL);
  for (int i = 0; i < 6; ++i) {
    tensors_match_closed_form(model, 1, sizes + i);
    calls_match_closed_form(model, sizes[i]);
  }
  const int64_t two_axes[2] = {3, 4}, none_of_three[2] = {3, 0};
  tensors_match_closed_form(model, 2, two_axes);
  tensors_match_closed_form(model, 2, none_of_three);

  variables_interleave(model);
  stride_zero_is_one_value_for_all(model);
  output_may_be_the_array_of_an_input(model);
  other_layouts_are_copied(model);
  unbound_output_is_not_written(model);
  variables_are_listed(model);
  no_points_need_no_arrays(model);
  one_value_may_lie_inside_an_interleaved_array(model);
  arrays_that_would_be_spoilt_are_refused(model);
  a_batch_beyond_any_memory_is_refused(model);

  neml2_model_free(&model);
  CHECK(model == NULL);
  return CHECK_RESULT();
}
