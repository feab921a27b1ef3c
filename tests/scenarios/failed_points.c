/* Failed points leave the others alone, and a step that is too large is cut. */
#include "scenario.h"

enum { N = 8, FAILED = 3, PEAK = 5 };

/* Steps from rest to the peak of the cycle at once, then again with a strain beyond all measure at one point. */
static void one_point_fails_alone(const neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  double good[STATE_SIZE * N];
  cycle_load(&b, 0, PEAK);
  CHECK_OK(neml2_call_run(call, N));
  memcpy(good, b.state, sizeof good);

  for (int i = 0; i < STATE_SIZE * N; ++i) b.state[i] = -1;
  b.strain[6 * FAILED] = 1e200;
  const int32_t status = neml2_call_run(call, N);
  CHECK(status >= NEML2_NOT_CONVERGED);
  for (int p = 0; p < N; ++p) {
    const double *state = b.state + STATE_SIZE * p;
    if (p == FAILED) {
      CHECK(b.status[p] == status);
      for (int i = 0; i < STATE_SIZE; ++i) CHECK(state[i] == -1);
    } else {
      CHECK(b.status[p] == NEML2_OK);
      CHECK_SAME(STATE_SIZE, state, good + STATE_SIZE * p);
    }
  }
  print_integers("status", N, b.status);
  print_points("stress", N, 6, STATE_SIZE, b.state);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

/* Steps from rest to the peak, and halves a step that needs more than 3 iterations. */
static void a_step_is_cut_until_it_converges(neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  double peak[6 * N], reached = 0, cut = 1;
  int32_t steps = 0;
  CHECK_OK(neml2_model_option_set_number(model, "miters", 4)); /* the bound of the count, exclusive */
  cycle_load(&b, 0, PEAK);
  memcpy(peak, b.strain, sizeof peak);
  while (reached < 1 && cut > 1e-6) {
    for (int i = 0; i < 6 * N; ++i) b.strain[i] = (reached + cut) * peak[i];
    b.time = (reached + cut) * (double)PEAK;
    const int32_t status = neml2_call_run(call, N);
    if (status == NEML2_OK) {
      viscoplastic_accept(&b);
      reached += cut;
      ++steps;
    } else {
      CHECK(status > 0); /* recoverable */
      cut /= 2;
    }
  }
  CHECK(reached == 1 && steps > 1);
  print_integers("steps", 1, &steps);
  print_points("stress", N, 6, STATE_SIZE, b.state);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

int main(void) {
  scenario_begin();
  neml2_model *model = load(artifact("viscoplastic"));
  one_point_fails_alone(model);
  a_step_is_cut_until_it_converges(model);
  neml2_model_free(&model);
  return scenario_end();
}
