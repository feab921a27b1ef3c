/* The viscoplastic model over a cyclic history: a point is a point, whatever batch it came in. */
#include "materials.h"

enum { N = 13, STEPS = 20 };

/* Whole block at once, point by point, and with another chunk size. */
static void results_do_not_depend_on_the_batch(neml2_model *model) {
  double chunk = 0;
  viscoplastic_block whole = viscoplastic_create(N), single = viscoplastic_create(N), chunked = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &whole, 0), *chunked_call = viscoplastic_call(model, &chunked, 0);
  CHECK_OK(neml2_model_option_get_number(&chunk, model, "chunk"));
  for (int k = 1; k <= STEPS; ++k) {
    viscoplastic_load(&whole, k);
    viscoplastic_load(&single, k);
    viscoplastic_load(&chunked, k);
    CHECK_OK(neml2_call_run(call, N));
    for (int p = 0; p < N; ++p) {
      neml2_call *one = viscoplastic_call(model, &single, p);
      CHECK_OK(neml2_call_run(one, 1));
      neml2_call_free(&one);
    }
    CHECK_OK(neml2_model_option_set_number(model, "chunk", 3));
    CHECK_OK(neml2_call_run(chunked_call, N));
    CHECK_OK(neml2_model_option_set_number(model, "chunk", chunk));

    CHECK_SAME(STATE_SIZE * N, single.state, whole.state);
    CHECK_SAME(STATE_SIZE * N, chunked.state, whole.state);
    CHECK_SAME(N, single.iterations, whole.iterations);
    viscoplastic_accept(&whole);
    viscoplastic_accept(&single);
    viscoplastic_accept(&chunked);
  }
  CHECK(whole.state[6] > 1e-3); /* it did flow */
  neml2_call_free(&call);
  neml2_call_free(&chunked_call);
  viscoplastic_free(&whole);
  viscoplastic_free(&single);
  viscoplastic_free(&chunked);
}

static void tensors_and_calls_agree(neml2_model *model) {
  viscoplastic_block b = viscoplastic_after(model, N, 4);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS] = {NULL}, *outputs[VISCOPLASTIC_OUTPUTS] = {NULL}, *iterations = NULL;
  neml2_report *report = NULL;
  viscoplastic_load(&b, 5);
  viscoplastic_tensors(model, &b, inputs);
  CHECK_OK(neml2_call_run(call, N));
  if (CHECK_OK(neml2_model_forward(outputs, &report, model, inputs, NULL))) {
    for (int k = 0; k < VISCOPLASTIC_OUTPUTS; ++k) {
      const int64_t size = viscoplastic_state[k].size;
      int64_t index = -1;
      REQUIRE_OK(neml2_model_variable_find(&index, model, NEML2_OUTPUT, viscoplastic_state[k].name));
      const double *values = tensor_values(outputs[index]);
      for (int p = 0; p < N; ++p)
        CHECK_SAME(size, values + size * p, b.state + STATE_SIZE * p + viscoplastic_state[k].offset);
    }
    void *data = NULL;
    REQUIRE_OK(neml2_report_get(&iterations, report, NEML2_REPORT_ITERATIONS));
    data = tensor_info(iterations).data;
    CHECK_SAME(N, b.iterations, (int32_t *)data);
  }
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&inputs[i]);
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&outputs[i]);
  neml2_tensor_free(&iterations);
  neml2_report_free(&report);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

/* The history is large: it is kept on request only. */
static void no_history_unasked(neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS] = {NULL}, *outputs[VISCOPLASTIC_OUTPUTS] = {NULL}, *history = NULL;
  neml2_report *report = NULL;
  viscoplastic_load(&b, 5);
  viscoplastic_tensors(model, &b, inputs);
  if (CHECK_OK(neml2_model_forward(outputs, &report, model, inputs, NULL))) {
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_report_get(&history, report, NEML2_REPORT_RESIDUAL_HISTORY));
    CHECK_SAYS("collect_history");
  }
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&inputs[i]);
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&outputs[i]);
  neml2_report_free(&report);
  viscoplastic_free(&b);
}

static void residual_is_below_tolerance(neml2_model *model) {
  viscoplastic_block b = viscoplastic_after(model, N, 4);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS] = {NULL}, *outputs[VISCOPLASTIC_OUTPUTS] = {NULL}, *history = NULL;
  neml2_report *report = NULL;
  double atol = 0, rtol = 0, miters = 0;
  CHECK_OK(neml2_model_option_get_number(&atol, model, "atol"));
  CHECK_OK(neml2_model_option_get_number(&rtol, model, "rtol"));
  CHECK_OK(neml2_model_option_get_number(&miters, model, "miters"));
  viscoplastic_load(&b, 5);
  viscoplastic_tensors(model, &b, inputs);
  CHECK_OK(neml2_model_option_set_number(model, "collect_history", 1));
  if (CHECK_OK(neml2_model_forward(outputs, &report, model, inputs, NULL)) && CHECK_OK(neml2_call_run(call, N))) {
    REQUIRE_OK(neml2_report_get(&history, report, NEML2_REPORT_RESIDUAL_HISTORY));
    const int64_t *shape = NULL;
    shape = tensor_info(history).shape;
    CHECK(shape[0] == N && shape[1] == (int64_t)miters);
    for (int p = 0; p < N; ++p) {
      const double *norms = tensor_values(history) + shape[1] * p;
      const double last = norms[b.iterations[p]];
      CHECK(last == b.residual_norm[p]);
      CHECK(last < atol || last < rtol * norms[0]);
      CHECK(b.iterations[p] + 1 >= shape[1] || isnan(norms[b.iterations[p] + 1]));
    }
  }
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&inputs[i]);
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&outputs[i]);
  neml2_tensor_free(&history);
  neml2_report_free(&report);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

/* New state over old state: the host keeps one array. */
static void state_may_be_updated_in_place(neml2_model *model) {
  viscoplastic_block b = viscoplastic_after(model, N, 4);
  double *kept = doubles(STATE_SIZE * N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  viscoplastic_load(&b, 5);
  CHECK_OK(neml2_call_run(call, N));
  memcpy(kept, b.state, STATE_SIZE * N * sizeof *kept);
  for (int k = 0; k < VISCOPLASTIC_OUTPUTS; ++k)
    CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, viscoplastic_state[k].name, b.old_state + viscoplastic_state[k].offset,
                             NEML2_FLOAT64, STATE_SIZE));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_SAME(STATE_SIZE * N, b.old_state, kept);
  neml2_call_free(&call);
  viscoplastic_free(&b);
  free(kept);
}

/* In whole-batch mode one point that fails fails all; alone it is just that one. */
static void one_bad_point_fails_alone(neml2_model *model) {
  enum { BAD = 4 };
  viscoplastic_block b = viscoplastic_after(model, N, 4);
  double *good = doubles(STATE_SIZE * N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  viscoplastic_load(&b, 5);
  CHECK_OK(neml2_call_run(call, N));
  memcpy(good, b.state, STATE_SIZE * N * sizeof *good);

  for (int i = 0; i < STATE_SIZE * N; ++i) b.state[i] = -1;
  b.strain[6 * BAD + 2] = 1e200;
  const int32_t status = neml2_call_run(call, N);
  CHECK(status == NEML2_NOT_CONVERGED || status == NEML2_SINGULAR);
  for (int p = 0; p < N; ++p) {
    if (p == BAD) {
      CHECK(b.status[p] == status);
      for (int i = 0; i < STATE_SIZE; ++i) CHECK(b.state[STATE_SIZE * p + i] == -1); /* left as it was */
    } else {
      CHECK(b.status[p] == NEML2_OK);
      CHECK_SAME(STATE_SIZE, b.state + STATE_SIZE * p, good + STATE_SIZE * p);
    }
  }

  viscoplastic_load(&b, 5);
  CHECK_OK(neml2_call_run(call, N));
  CHECK_SAME(STATE_SIZE * N, b.state, good);
  neml2_call_free(&call);
  viscoplastic_free(&b);
  free(good);
}

/* NEML2's runtime takes an input of an unknown's name as a guess, which the predictor replaces. */
static void a_guess_that_is_predicted_changes_nothing(const neml2_model *model) {
  viscoplastic_block a = viscoplastic_create(3), b = viscoplastic_create(3);
  neml2_call *plain = viscoplastic_call(model, &a, 0), *guessed = viscoplastic_call(model, &b, 0);
  double guess[3][6] = {{1e3}};
  viscoplastic_load(&a, 5);
  viscoplastic_load(&b, 5);
  CHECK_OK(neml2_call_bind(guessed, NEML2_INPUT, "stress", guess, NEML2_FLOAT64, 6));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(guessed, NEML2_INPUT, "strss", guess, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(plain, 3));
  CHECK_OK(neml2_call_run(guessed, 3));
  CHECK(memcmp(a.state, b.state, sizeof(double) * 3 * STATE_SIZE) == 0);
  neml2_call_free(&plain);
  neml2_call_free(&guessed);
  viscoplastic_free(&a);
  viscoplastic_free(&b);
}

/* Fifty per cent from rest: Newton's method fails; the option rescue goes on, and counts. */
static void a_step_that_is_too_large_is_rescued(neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  int32_t solves[N];
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS] = {NULL}, *outputs[VISCOPLASTIC_OUTPUTS] = {NULL}, *told = NULL;
  neml2_report *report = NULL;
  viscoplastic_load(&b, 5);
  for (int i = 0; i < 6 * N; ++i) b.strain[i] *= 50;
  b.time = 1;
  neml2_call *call = viscoplastic_call(model, &b, 0);
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_RESCUE_SOLVES, solves, 1));
  memset(solves, 1, sizeof solves);
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, N));
  CHECK_SAYS("rescue");
  for (int p = 0; p < N; ++p) CHECK(solves[p] == 0);

  CHECK_OK(neml2_model_option_set_number(model, "rescue", 100));
  CHECK_OK(neml2_call_run(call, N));
  int rescued = 0;
  for (int p = 0; p < N; ++p) {
    CHECK(b.status[p] == NEML2_OK && b.residual_norm[p] < 1e-3);
    rescued += solves[p] > 0;
  }
  CHECK(rescued > 0);
  viscoplastic_tensors(model, &b, inputs);
  if (CHECK_OK(neml2_model_forward(outputs, &report, model, inputs, NULL))) {
    CHECK_OK(neml2_report_get(&told, report, NEML2_REPORT_RESCUE_SOLVES));
    CHECK_SAME(N, solves, (const int32_t *)tensor_info(told).data);
    neml2_tensor_free(&told);
    neml2_report_free(&report);
  }
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&outputs[i]);
  CHECK_OK(neml2_model_option_set_number(model, "rescue", 0));
  if (CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_model_forward(outputs, &report, model, inputs, NULL))) {
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_report_get(&told, report, NEML2_REPORT_RESCUE_SOLVES));
    CHECK_SAYS("option rescue");
  }
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&inputs[i]);
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&outputs[i]);
  neml2_report_free(&report);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

int main(void) {
  neml2_model *model = load(artifact("viscoplastic"));
  results_do_not_depend_on_the_batch(model);
  tensors_and_calls_agree(model);
  no_history_unasked(model);
  residual_is_below_tolerance(model);
  state_may_be_updated_in_place(model);
  one_bad_point_fails_alone(model);
  a_guess_that_is_predicted_changes_nothing(model);
  a_step_that_is_too_large_is_rescued(model);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
