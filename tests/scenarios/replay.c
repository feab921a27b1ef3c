/* A cycle whose strains are known beforehand, by one function: the same bits as one step after another. */
#include "scenario.h"

enum { N = 5, STEPS = 20 };

static double times[STEPS], strain[STEPS][N][6], state[STEPS][N][STATE_SIZE], rest[STATE_SIZE];

static void bind(neml2_call *call, int32_t role, const char *name, double *data, int64_t stride, int64_t step_stride) {
  CHECK_OK(neml2_call_bind(call, role, name, data, NEML2_FLOAT64, stride));
  CHECK_OK(neml2_call_step_stride_set(call, role, name, step_stride));
}

int main(void) {
  scenario_begin();
  neml2_model *model = load(artifact("viscoplastic"));
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *step = viscoplastic_call(model, &b, 0), *call = NULL;
  int64_t made = 0;

  for (int k = 1; k <= STEPS; ++k) {
    cycle_load(&b, 0, k);
    times[k - 1] = b.time;
    memcpy(strain[k - 1], b.strain, sizeof strain[0]);
  }
  CHECK_OK(neml2_call_create(&call, model));
  bind(call, NEML2_INPUT, "t", times, 0, 1);
  bind(call, NEML2_INPUT, "t~1", rest, 0, 0);
  bind(call, NEML2_INPUT, "strain", strain[0][0], 6, 6 * N);
  bind(call, NEML2_INPUT, "strain~1", rest, 0, 0);
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) {
    bind(call, NEML2_INPUT, viscoplastic_state[i].old_name, rest, 0, 0);
    bind(call, NEML2_OUTPUT, viscoplastic_state[i].name, state[0][0] + viscoplastic_state[i].offset, STATE_SIZE,
         STATE_SIZE * N);
  }
  CHECK_OK(neml2_call_run_steps(&made, call, N, STEPS));
  CHECK(made == STEPS);
  for (int k = 1; k <= STEPS; ++k) {
    cycle_load(&b, 0, k);
    CHECK_OK(neml2_call_run(step, N));
    CHECK_SAME(N * STATE_SIZE, b.state, state[k - 1][0]);
    viscoplastic_accept(&b);
  }
  print_points("state", N, STATE_SIZE, STATE_SIZE, state[STEPS - 1][0]);

  /* Four iterations are too few once the strain turns. */
  CHECK_OK(neml2_model_option_set_number(model, "miters", 5));
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run_steps(&made, call, N, STEPS));
  printf("made %d\n", (int)made);

  neml2_call_free(&call);
  neml2_call_free(&step);
  viscoplastic_free(&b);
  neml2_model_free(&model);
  return scenario_end();
}
