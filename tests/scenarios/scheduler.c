/* Points in sub-batches on the devices of a scheduler: the same results, and errors of each sub-batch. */
#include "scenario.h"

enum { N = 8, STEPS = 5, BATCH_SIZE = 3 };

static neml2_model *load_scheduled(const char *path) {
  neml2_scheduler *scheduler = NULL;
  neml2_model *model = NULL;
  CHECK_OK(neml2_scheduler_create(&scheduler));
  CHECK_OK(
      neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = BATCH_SIZE, .priority = 1.0)));
  CHECK_OK(neml2_model_open(&model, SOURCE(.path = path, .scheduler = scheduler)));
  neml2_scheduler_free(&scheduler);
  return model;
}

/* Steps from rest through the beginning of the cycle. */
static viscoplastic_block cycled(const neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  for (int k = 1; k <= STEPS; ++k) {
    if (k > 1) viscoplastic_accept(&b);
    cycle_load(&b, 0, k);
    CHECK_OK(neml2_call_run(call, N));
  }
  neml2_call_free(&call);
  return b;
}

/* Steps from rest to the peak at once, with strains beyond all measure at the points 1 and 6. */
static void sub_batches_fail(const neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  int32_t errors[2] = {0, 0};
  cycle_load(&b, 0, STEPS);
  b.strain[6 * 1] = b.strain[6 * 6] = 1e200;
  CHECK(neml2_call_run(call, N) >= NEML2_NOT_CONVERGED);
  CHECK(error_count() == 2);
  for (int i = 0; i < 2; ++i) CHECK_OK(neml2_error_get(&errors[i], NULL, NULL, 0, NULL, i));
  print_integers("errors", 2, errors);
  print_integers("status", N, b.status);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

int main(void) {
  scenario_begin();
  neml2_model *plain = load(artifact("viscoplastic")), *model = load_scheduled(artifact("viscoplastic"));
  viscoplastic_block expected = cycled(plain), b = cycled(model);
  int64_t evaluated = 0;
  CHECK_SAME(STATE_SIZE * N, b.state, expected.state);
  print_points("state", N, STATE_SIZE, STATE_SIZE, b.state);
  CHECK_OK(neml2_model_points(&evaluated, model, 0));
  CHECK(evaluated == N * STEPS);
  viscoplastic_free(&expected);
  viscoplastic_free(&b);
  sub_batches_fail(model);
  neml2_model_free(&plain);
  neml2_model_free(&model);
  return scenario_end();
}
