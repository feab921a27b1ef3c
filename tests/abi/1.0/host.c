/* A host as of ABI 1.0: it calls every function that is frozen, and is built with the header of that time.
 *
 * A later library must run it unchanged. Results are compared with Hooke's law and with one another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neml2_capi.h"

enum { POINTS = 3 };

static const double young = 200e3, poisson = 0.3;
static int failures;

static void check(int holds, int line, const char *what) {
  char message[1024];
  if (holds) return;
  ++failures;
  neml2_error_message(message, sizeof message, NULL);
  fprintf(stderr, "host.c:%d: failed: %s; last error: %s\n", line, what, message);
}
#define CHECK(condition) check(condition, __LINE__, #condition)
#define CHECK_OK(call) check((call) == NEML2_OK, __LINE__, #call)

static void check_near(int64_t n, const void *found, const double *expected, double tolerance, int line) {
  const double *values = found;
  double scale = 0;
  for (int64_t i = 0; i < n; ++i) scale = fmax(scale, fabs(expected[i]));
  for (int64_t i = 0; i < n; ++i) check(fabs(values[i] - expected[i]) <= tolerance * scale, line, "values agree");
}
#define CHECK_NEAR(n, found, expected, tolerance) check_near(n, found, expected, tolerance, __LINE__)

static const double strain[POINTS][6] = {
    {1e-3, -3e-4, -2e-4, 2e-4, -1e-4, 5e-5}, {5e-4, 1e-4, 2e-4, -1e-4, 3e-4, 1e-4}, {-1e-3, 2e-4, 3e-4, 1e-4, 0, 2e-4}};

static void hooke(double (*stress)[6], double e, const double (*at)[6]) {
  const double shear = e / (2 * (1 + poisson)), lambda = e * poisson / ((1 + poisson) * (1 - 2 * poisson));
  for (int p = 0; p < POINTS; ++p)
    for (int i = 0; i < 6; ++i)
      stress[p][i] = 2 * shear * at[p][i] + (i < 3 ? lambda * (at[p][0] + at[p][1] + at[p][2]) : 0);
}

static neml2_model *opened(const char *name) {
  char path[4096];
  neml2_source source = {.size = sizeof source, .path = path};
  neml2_model *model = NULL;
  int64_t needed = 0;
  const char *folder = getenv("NEML2_TEST_ARTIFACTS");
  snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
  CHECK_OK(neml2_source_describe(NULL, 0, &needed, &source));
  CHECK(needed > 100);
  CHECK_OK(neml2_model_open(&model, &source));
  if (!model) exit(EXIT_FAILURE);
  return model;
}

static neml2_tensor *over(const void *data, int64_t points, int64_t n) {
  const int64_t shape[2] = {points, n};
  neml2_tensor *tensor = NULL;
  CHECK_OK(neml2_tensor_wrap(&tensor, (void *)data, NEML2_FLOAT64, n ? 2 : 1, shape, NULL, NULL, NULL));
  return tensor;
}

static const void *data_of(const neml2_tensor *tensor) {
  neml2_tensor_info info = {.size = sizeof info};
  CHECK_OK(neml2_tensor_inspect(&info, tensor));
  CHECK(info.dtype == NEML2_FLOAT64 && info.device == NEML2_DEVICE_CPU && info.row_major);
  return info.data;
}

static void errors(void) {
  neml2_source source = {.size = sizeof source, .path = "/nothing/here"};
  neml2_model *model = NULL;
  char text[256];
  int32_t status = 0, cause = -1;
  int64_t needed = 0, count = 0;
  CHECK(neml2_model_open(&model, &source) == NEML2_ERROR_FILE && !model);
  CHECK(neml2_error_status() == NEML2_ERROR_FILE && neml2_error_cause() == NEML2_CAUSE_NONE);
  CHECK_OK(neml2_error_message(text, sizeof text, &needed));
  CHECK(strstr(text, "/nothing/here") && needed > 10);
  CHECK_OK(neml2_error_subject(text, sizeof text, NULL));
  CHECK_OK(neml2_error_count(&count));
  CHECK(count == 1);
  CHECK_OK(neml2_error_get(&status, &cause, text, sizeof text, NULL, 0));
  CHECK(status == NEML2_ERROR_FILE && cause == NEML2_CAUSE_NONE);
  CHECK(neml2_error_record(NEML2_NOT_CONVERGED, NEML2_CAUSE_OF_HOST, "mine", "my solver") == NEML2_NOT_CONVERGED);
  CHECK(neml2_error_cause() == NEML2_CAUSE_OF_HOST);
}

static void description(const neml2_model *elasticity, const neml2_model *viscoplastic) {
  neml2_model_info model = {.size = sizeof model};
  neml2_variable_info variable = {.size = sizeof variable};
  neml2_derivative_info derivative = {.size = sizeof derivative};
  neml2_history_info history = {.size = sizeof history};
  neml2_bound_info bound = {.size = sizeof bound};
  int64_t count = 0, needed = 0;
  CHECK_OK(neml2_model_inspect(&model, elasticity));
  CHECK(model.dtype == NEML2_FLOAT64 && model.device == NEML2_DEVICE_CPU && model.runtime == NEML2_RUNTIME_BUILTIN);
  CHECK_OK(neml2_model_describe(NULL, 0, &needed, elasticity));
  CHECK(needed > 100);
  CHECK_OK(neml2_model_checksum(NULL, 0, &needed, elasticity));
  CHECK(needed == 65);
  CHECK_OK(neml2_model_variable_count(&count, elasticity, NEML2_INPUT));
  CHECK(count == 1);
  CHECK_OK(neml2_model_variable_find(&count, elasticity, NEML2_OUTPUT, "stress"));
  CHECK_OK(neml2_model_variable_inspect(&variable, elasticity, NEML2_OUTPUT, count));
  CHECK(strcmp(variable.name, "stress") == 0 && variable.ndim == 1 && variable.shape[0] == 6 && !variable.sub_ndim);
  CHECK_OK(neml2_model_derivative_count(&count, elasticity, NEML2_INPUT));
  CHECK(count == 1);
  CHECK_OK(neml2_model_derivative_inspect(&derivative, elasticity, NEML2_INPUT, 0));
  CHECK(derivative.ndim == 2 && derivative.shape[0] == 6 && derivative.shape[1] == 6);
  CHECK_OK(neml2_model_history_count(&count, viscoplastic));
  CHECK(count == 6);
  CHECK_OK(neml2_model_history_inspect(&history, viscoplastic, 0));
  CHECK(history.age == 1 && (history.output >= 0 || history.current >= 0));
  CHECK_OK(neml2_model_bound_count(&count, viscoplastic));
  CHECK(count == 0);
  CHECK(neml2_model_bound_inspect(&bound, viscoplastic, 0) == NEML2_ERROR_ARGUMENT);
}

static void options(neml2_model *model) {
  neml2_option_info info = {.size = sizeof info};
  const char *text = NULL;
  double number = 0;
  int64_t count = 0, found = 0;
  CHECK_OK(neml2_model_option_count(&count, model));
  for (int64_t i = 0; i < count; ++i) {
    CHECK_OK(neml2_model_option_inspect(&info, model, i));
    found += strcmp(info.name, "miters") == 0 || strcmp(info.name, "convergence") == 0;
  }
  CHECK(found == 2);
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 2));
  CHECK_OK(neml2_model_option_get_number(&number, model, "chunk"));
  CHECK(number == 2);
  CHECK_OK(neml2_model_option_set_text(model, "convergence", "point"));
  CHECK_OK(neml2_model_option_get_text(&text, model, "convergence"));
  CHECK(strcmp(text, "point") == 0);
}

static int32_t never(void *context) {
  ++*(int *)context;
  return 0;
}

static void calls(const neml2_model *model) {
  double stress[POINTS][6], expected[POINTS][6], tangent[POINTS][6][6];
  int32_t status[POINTS] = {-1, -1, -1};
  int asked = 0;
  int64_t made = 0;
  double time = 0;
  neml2_call *call = NULL;
  hooke(expected, young, strain);
  CHECK_OK(neml2_interrupt_set(never, &asked));
  CHECK_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", (void *)strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", tangent, NEML2_FLOAT64, 36));
  CHECK_OK(neml2_call_block_order_set(call, NEML2_INPUT_FIRST));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, status, 1));
  CHECK_OK(neml2_call_run(call, POINTS));
  CHECK_NEAR(6 * POINTS, stress, expected[0], 1e-12);
  for (int p = 0; p < POINTS; ++p) {
    double product[6] = {0};
    for (int i = 0; i < 6; ++i)
      for (int o = 0; o < 6; ++o) product[o] += tangent[p][i][o] * strain[p][i];
    CHECK_NEAR(6, product, expected[p], 1e-12);
    CHECK(status[p] == NEML2_OK);
  }
  /* Each point as a step. */
  CHECK_OK(neml2_call_step_stride_set(call, NEML2_INPUT, "strain", 6));
  CHECK_OK(neml2_call_step_stride_set(call, NEML2_OUTPUT, "stress", 6));
  CHECK_OK(neml2_call_derivative_step_stride_set(call, NEML2_INPUT, "stress", "strain", 36));
  CHECK_OK(neml2_call_report_step_stride_set(call, NEML2_REPORT_STATUS, 1));
  memset(stress, 0, sizeof stress);
  CHECK_OK(neml2_call_run_steps(&made, call, 1, POINTS));
  CHECK(made == POINTS);
  CHECK_NEAR(6 * POINTS, stress, expected[0], 1e-12);
  CHECK_OK(neml2_call_state_save(call, "host_of_1_0.state", POINTS, 7, 0.5));
  CHECK_OK(neml2_call_state_load(&made, &time, call, "host_of_1_0.state", POINTS));
  CHECK(made == 7 && time == 0.5);
  remove("host_of_1_0.state");
  neml2_call_free(&call);
  neml2_call_free(&call);
  CHECK_OK(neml2_interrupt_set(NULL, NULL));
}

static void tensors(const neml2_model *model) {
  const int64_t shape[2] = {POINTS, 6};
  double expected[POINTS][6];
  neml2_tensor *input = over(strain, POINTS, 6), *copy = NULL, *output = NULL, *product = NULL, *block = NULL;
  neml2_tensor *again = NULL;
  struct DLManagedTensorVersioned *managed = NULL;
  neml2_report *report = NULL;
  neml2_tensor *statuses = NULL, *unknown = NULL;
  hooke(expected, young, strain);
  CHECK_OK(neml2_tensor_create(&copy, NEML2_FLOAT64, 2, shape));
  neml2_tensor_free(&copy);
  CHECK_OK(neml2_tensor_share(&copy, input));
  CHECK_OK(neml2_tensor_to_dlpack(&managed, copy));
  CHECK_OK(neml2_tensor_from_dlpack(&again, managed));
  CHECK(data_of(again) == (const void *)strain);

  CHECK_OK(neml2_model_forward(&output, &report, model, &input, NULL));
  CHECK_NEAR(6 * POINTS, data_of(output), expected[0], 1e-12);
  CHECK_OK(neml2_report_get(&statuses, report, NEML2_REPORT_RESIDUAL_NORM));
  CHECK(neml2_report_get_unknown(&unknown, report, 0) < 0 && !unknown);
  neml2_tensor_free(&output);
  CHECK_OK(neml2_model_jvp(&output, &product, NULL, model, &input, &copy, NULL));
  CHECK_NEAR(6 * POINTS, data_of(product), expected[0], 1e-12);
  neml2_tensor_free(&output);
  neml2_tensor_free(&product);
  CHECK_OK(neml2_model_vjp(&output, &product, NULL, model, NEML2_INPUT, &input, &copy, NULL));
  CHECK_NEAR(6 * POINTS, data_of(product), expected[0], 1e-12); /* Hooke's tensor is symmetric */
  neml2_tensor_free(&output);
  CHECK_OK(neml2_model_jacobian(&output, &block, NULL, model, NEML2_INPUT, &input, NULL));
  CHECK_NEAR(6 * POINTS, data_of(output), expected[0], 1e-12);
  neml2_tensor_free(&output);
  neml2_tensor_free(&product);
  neml2_tensor_free(&block);
  neml2_tensor_free(&statuses);
  neml2_tensor_free(&again);
  neml2_tensor_free(&copy);
  neml2_tensor_free(&input);
  neml2_report_free(&report);
}

static void parameters(neml2_model *model) {
  double stress[POINTS][6], expected[POINTS][6];
  const double half = young / 2;
  neml2_tensor *value = NULL, *stored = NULL;
  neml2_call *call = NULL;
  hooke(expected, half, strain);
  CHECK_OK(neml2_tensor_wrap(&value, (void *)&half, NEML2_FLOAT64, 0, NULL, NULL, NULL, NULL));
  CHECK_OK(neml2_model_parameter_set(model, "elasticity.E", value));
  CHECK_OK(neml2_model_parameter_get(&stored, model, "elasticity.E"));
  CHECK_NEAR(1, data_of(stored), &half, 0);
  CHECK_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", (void *)strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, POINTS));
  CHECK_NEAR(6 * POINTS, stress, expected[0], 1e-12);
  neml2_call_free(&call);
  neml2_tensor_free(&stored);
  neml2_tensor_free(&value);
}

/* One step of the viscoplastic law from rest: its eight inputs and four outputs. */
static const char *const input_names[] = {
    "t", "t~1", "strain", "strain~1", "stress~1", "equivalent_plastic_strain~1", "X1~1", "X2~1"};
static const int64_t input_sizes[] = {0, 0, 6, 6, 6, 0, 6, 6};
enum { INPUTS = 8, OUTPUTS = 4 };

static double zeros[POINTS][6], times[POINTS] = {1, 1, 1}, large[POINTS][6];

static const void *input_data(int i) {
  if (i == 0) return times;
  return strcmp(input_names[i], "strain") == 0 ? (const void *)large : zeros;
}

static int32_t solve_system(void *context, neml2_system *system) {
  neml2_system_info info = {.size = sizeof info};
  neml2_unknown_info unknown = {.size = sizeof unknown};
  double *u, *du, *r, *a;
  int32_t singular[POINTS], status[POINTS] = {0}, iterations[POINTS] = {0};
  (void)context;
  CHECK_OK(neml2_system_inspect(&info, system));
  CHECK(info.npoints == POINTS && info.n == 19);
  CHECK_OK(neml2_system_unknown_inspect(&unknown, system, 0));
  u = calloc((size_t)(POINTS * info.n), sizeof *u);
  du = calloc((size_t)(POINTS * info.n), sizeof *du);
  r = calloc((size_t)(POINTS * info.n), sizeof *r);
  a = calloc((size_t)(POINTS * info.n * info.n), sizeof *a);
  if (!u || !du || !r || !a) exit(EXIT_FAILURE);
  CHECK_OK(neml2_system_guess(u, system));
  for (int k = 0; k < 30; ++k) {
    CHECK_OK(neml2_system_step(du, singular, system, u));
    for (int64_t i = 0; i < POINTS * info.n; ++i) u[i] += du[i];
    for (int p = 0; p < POINTS; ++p) iterations[p] = k + 1;
  }
  CHECK_OK(neml2_system_residual(r, system, u));
  for (int64_t i = 0; i < POINTS * info.n; ++i) CHECK(fabs(r[i]) < 1e-6);
  CHECK_OK(neml2_system_jacobian(a, system, u));
  CHECK_OK(neml2_system_matvec(r, system, u, du));
  CHECK_OK(neml2_system_accept(system, u, status, iterations));
  free(a);
  free(r);
  free(du);
  free(u);
  return NEML2_OK;
}

static void solves(const neml2_model *model) {
  double bound[POINTS][6];
  neml2_tensor *inputs[INPUTS] = {NULL}, *native[OUTPUTS] = {NULL}, *own[OUTPUTS] = {NULL}, *loop[OUTPUTS] = {NULL};
  neml2_call *call = NULL;
  neml2_solve *solve = NULL;
  neml2_system *system = NULL;
  int64_t place = -1;
  for (int p = 0; p < POINTS; ++p)
    for (int i = 0; i < 6; ++i) large[p][i] = 4 * strain[p][i];
  CHECK_OK(neml2_call_create(&call, model));
  for (int i = 0; i < INPUTS; ++i) {
    CHECK_OK(neml2_model_variable_find(&place, model, NEML2_INPUT, input_names[i]));
    inputs[place] = over(input_data(i), POINTS, input_sizes[i]);
    CHECK_OK(neml2_call_bind(call, NEML2_INPUT, input_names[i], (void *)input_data(i), NEML2_FLOAT64,
                             input_sizes[i] ? input_sizes[i] : 1));
  }
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", bound, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_model_variable_find(&place, model, NEML2_OUTPUT, "stress"));
  CHECK_OK(neml2_model_forward(native, NULL, model, inputs, NULL));

  CHECK_OK(neml2_solve_run(own, NULL, model, inputs, NULL, solve_system, NULL));
  CHECK_NEAR(6 * POINTS, data_of(own[place]), data_of(native[place]), 1e-8);

  CHECK_OK(neml2_solve_begin(&solve, model, inputs, NULL));
  while (neml2_solve_next(&system, solve) == NEML2_OK && system) solve_system(NULL, system);
  CHECK_OK(neml2_solve_end(loop, NULL, &solve));
  CHECK_NEAR(6 * POINTS, data_of(loop[place]), data_of(native[place]), 1e-8);

  CHECK_OK(neml2_solve_begin_call(&solve, call, POINTS));
  while (neml2_solve_next(&system, solve) == NEML2_OK && system) solve_system(NULL, system);
  CHECK_OK(neml2_solve_end(NULL, NULL, &solve));
  CHECK_NEAR(6 * POINTS, bound, data_of(native[place]), 1e-8);

  CHECK_OK(neml2_solve_begin(&solve, model, inputs, NULL));
  neml2_solve_free(&solve);
  for (int i = 0; i < INPUTS; ++i) neml2_tensor_free(&inputs[i]);
  for (int i = 0; i < OUTPUTS; ++i) {
    neml2_tensor_free(&native[i]);
    neml2_tensor_free(&own[i]);
    neml2_tensor_free(&loop[i]);
  }
  neml2_call_free(&call);
}

static void logging(neml2_model *model) {
  char message[NEML2_LOG_LENGTH];
  const char *channel = NULL;
  int32_t level = -1;
  int64_t count = 0;
  CHECK_OK(neml2_log_level_set("newton", NEML2_LOG_INFO));
  CHECK_OK(neml2_log_level_get(&level, "newton"));
  CHECK(level == NEML2_LOG_INFO);
  solves(model);
  CHECK_OK(neml2_log_count(&count));
  CHECK(count > 0);
  CHECK_OK(neml2_log_next(&level, &channel, message, sizeof message, NULL));
  CHECK(level != NEML2_LOG_SILENT && channel);
}

int main(void) {
  neml2_model *elasticity = NULL, *viscoplastic = NULL;
  CHECK(neml2_abi_version() >= NEML2_ABI_VERSION && neml2_abi_version() / 1000 == NEML2_ABI_VERSION / 1000);
  printf("built for %d, runs with %d (%s)\n", NEML2_ABI_VERSION, (int)neml2_abi_version(), neml2_version());
  errors();
  elasticity = opened("elasticity");
  viscoplastic = opened("viscoplastic");
  description(elasticity, viscoplastic);
  options(elasticity);
  calls(elasticity);
  tensors(elasticity);
  parameters(elasticity);
  logging(viscoplastic);
  neml2_model_free(&viscoplastic);
  neml2_model_free(&elasticity);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
