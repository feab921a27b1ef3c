/* Bounds of an artifact: described, told in the log, or a status of the points that are beyond. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"
#include "materials.h"

enum { N = 40, BAD = 11 };

static const char BOUNDS[] =
    "{\"version\": 1, \"bounds\": ["
    "{\"variable\": \"strain\", \"kind\": \"validity\", \"lower\": [null], \"upper\": [0.05]},"
    "{\"variable\": \"elasticity.E\", \"kind\": \"physical\", \"lower\": [0], \"upper\": [null]}]}";

static double strain[N][6], stress[N][6];
static int32_t status[N];
static double cut[N];

static neml2_model *bounded(void) {
  const char *copy = copy_of(artifact("elasticity"));
  write_bytes(join_path(copy, "bounds.json"), BOUNDS, sizeof BOUNDS - 1);
  neml2_model *model = load(copy);
  remove_copy(copy);
  return model;
}

static neml2_call *call_of(const neml2_model *model) {
  neml2_call *call = NULL;
  some_strains(N, strain[0]);
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < 6; ++j) stress[i][j] = 5;
  CHECK_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, status, 1));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_SUGGESTED_CUT, cut, 1));
  return call;
}

static void bounds_are_listed(const neml2_model *model) {
  int64_t count = 0;
  CHECK_OK(neml2_model_bound_count(&count, model));
  CHECK(count == 2);
  const neml2_bound_info first = bound_info(model, 0), second = bound_info(model, 1);
  CHECK(first.kind == NEML2_INPUT && first.variable == 0 && first.ncomponents == 6 && !first.physical);
  for (int i = 0; i < 6; ++i) CHECK(first.lower[i] == -INFINITY && first.upper[i] == 0.05);
  CHECK(second.kind == NEML2_PARAMETER && second.ncomponents == 1 && second.physical && second.lower[0] == 0);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_bound_inspect(INFO(neml2_bound_info), model, 2));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_bound_inspect(INFO(neml2_bound_info), model, -1));
}

static void a_warning_waits_in_the_log(neml2_model *model) {
  char message[NEML2_LOG_LENGTH] = "";
  const char *channel = NULL, *policy = NULL;
  int32_t level = 0;
  neml2_call *call = call_of(model);
  CHECK_OK(neml2_model_option_get_text(&policy, model, "bounds"));
  CHECK(strcmp(policy, "warn") == 0);
  CHECK_OK(neml2_call_run(call, N));
  CHECK_OK(neml2_log_next(&level, &channel, message, sizeof message, NULL));
  CHECK(level == NEML2_LOG_SILENT); /* all are within */
  strain[BAD][2] = 0.06;
  CHECK_OK(neml2_call_run(call, N));
  CHECK_OK(neml2_log_next(&level, &channel, message, sizeof message, NULL));
  CHECK(level == NEML2_LOG_WARNING && strcmp(channel, "bounds") == 0);
  CHECK(strstr(message, "point 11") && strstr(message, "zz") && strstr(message, "0.06, above 0.05"));
  CHECK(stress[BAD][2] != 5);
  neml2_call_free(&call);
}

static void a_point_beyond_fails_alone(neml2_model *model) {
  double expected[N][6];
  neml2_call *call = call_of(model);
  CHECK_OK(neml2_call_run(call, N));
  memcpy(expected, stress, sizeof stress);
  CHECK_OK(neml2_model_option_set_text(model, "bounds", "fail"));
  neml2_call_free(&call);
  call = call_of(model);
  strain[BAD][2] = 0.06;
  CHECK_STATUS(NEML2_OUT_OF_BOUNDS, neml2_call_run(call, N));
  CHECK_SAYS("1 of 40 points are out of bounds");
  CHECK_SAYS("component zz, is 0.06, above 0.05, its upper bound");
  CHECK_SAYS("set the option bounds to warn");
  for (int p = 0; p < N; ++p) {
    CHECK(status[p] == (p == BAD ? NEML2_OUT_OF_BOUNDS : NEML2_OK));
    CHECK(cut[p] == (p == BAD ? 0.5 : 1.0));
    for (int i = 0; i < 6; ++i) CHECK(stress[p][i] == (p == BAD ? 5 : expected[p][i]));
  }
  CHECK_OK(neml2_model_option_set_text(model, "bounds", "off"));
  CHECK_OK(neml2_call_run(call, N));
  CHECK(stress[BAD][2] != 5);
  neml2_call_free(&call);
}

static void a_parameter_without_meaning_is_refused(neml2_model *model) {
  const double modulus = -1, kept = 1;
  neml2_tensor *value = tensor_over(&modulus, 0, NULL), *good = tensor_over(&kept, 0, NULL);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_parameter_set(model, "E", value));
  CHECK_ABOUT("elasticity.E"); /* nothing was changed */
  CHECK_SAYS("is -1, below 0, its physical lower bound");
  CHECK_OK(neml2_model_parameter_set(model, "E", good));
  neml2_call *call = call_of(model);
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, "E", (void *)&modulus, NEML2_FLOAT64, 0));
  CHECK_STATUS(NEML2_OUT_OF_BOUNDS, neml2_call_run(call, N));
  CHECK(cut[0] == 1); /* no smaller step mends it */
  neml2_call_free(&call);
  neml2_tensor_free(&value);
  neml2_tensor_free(&good);
}

static void steps_end_before_the_first_beyond(neml2_model *model) {
  enum { STEPS = 9 };
  static double history[STEPS][N][6], results[STEPS][N][6];
  int64_t made = -1;
  neml2_call *call = call_of(model);
  for (int k = 0; k < STEPS; ++k) history[k][BAD][0] = 0.01 * k;
  CHECK_OK(neml2_model_option_set_text(model, "bounds", "fail"));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", history, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", results, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_step_stride_set(call, NEML2_INPUT, "strain", N * 6));
  CHECK_OK(neml2_call_step_stride_set(call, NEML2_OUTPUT, "stress", N * 6));
  CHECK_STATUS(NEML2_OUT_OF_BOUNDS, neml2_call_run_steps(&made, call, N, STEPS));
  CHECK(made == 6);
  CHECK_SAYS("is 0.06, above 0.05");
  neml2_call_free(&call);
}

int main(void) {
  neml2_model *model = bounded();
  bounds_are_listed(model);
  a_warning_waits_in_the_log(model);
  a_point_beyond_fails_alone(model);
  steps_end_before_the_first_beyond(model);
  a_parameter_without_meaning_is_refused(model);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
