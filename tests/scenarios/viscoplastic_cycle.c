/* A cycle of tension and compression: all state variables of a point lie in one array. */
#include "scenario.h"

enum { N = 5, STEPS = 20 };

static void check_evolution(const viscoplastic_block *b) {
  for (int64_t p = 0; p < N; ++p) {
    const double *state = b->state + STATE_SIZE * p, *old_state = b->old_state + STATE_SIZE * p;
    CHECK(state[6] >= old_state[6]); /* plastic strain */
    for (int i = 7; i < STATE_SIZE; i += 6) CHECK(fabs(state[i] + state[i + 1] + state[i + 2]) < 1e-10); /* MPa */
  }
}

int main(void) {
  scenario_begin();
  neml2_model *model = load(artifact("viscoplastic"));
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  for (int k = 1; k <= STEPS; ++k) {
    cycle_load(&b, 0, k);
    CHECK_OK(neml2_call_run(call, N));
    check_evolution(&b);
    viscoplastic_accept(&b);
  }
  CHECK(b.state[6] > 1e-3); /* it did flow */
  print_points("state", N, STATE_SIZE, STATE_SIZE, b.state);
  print_integers("iterations", N, b.iterations);

  neml2_call_free(&call);
  viscoplastic_free(&b);
  neml2_model_free(&model);
  return scenario_end();
}
