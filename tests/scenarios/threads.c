/* Four threads share one model, each with a call and points of its own. */
#define _GNU_SOURCE
#include <pthread.h>

#include "scenario.h"

enum { N = 64, THREADS = 4, QUARTER = N / THREADS, STEPS = 5 };

typedef struct {
  const neml2_model *model;
  int64_t first; /* of its points, among all */
  viscoplastic_block points;
  int32_t status; /* the greatest, or an error */
} part;

static void *run_cycle(void *argument) {
  part *p = argument;
  neml2_call *call = viscoplastic_call(p->model, &p->points, 0);
  for (int k = 1; k <= STEPS; ++k) {
    cycle_load(&p->points, p->first, k);
    const int32_t status = neml2_call_run(call, p->points.n);
    if (status != NEML2_OK) p->status = status;
    viscoplastic_accept(&p->points);
  }
  neml2_call_free(&call);
  return NULL;
}

int main(void) {
  scenario_begin();
  neml2_model *model = load(artifact("viscoplastic"));
  part serial = {model, 0, viscoplastic_create(N), NEML2_OK}, parts[THREADS];
  pthread_t threads[THREADS];
  run_cycle(&serial);
  CHECK(serial.status == NEML2_OK);
  for (int i = 0; i < THREADS; ++i) {
    parts[i] = (part){model, i * QUARTER, viscoplastic_create(QUARTER), NEML2_OK};
    if (pthread_create(&threads[i], NULL, run_cycle, &parts[i]) != 0) return EXIT_FAILURE;
  }
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    CHECK(parts[i].status == NEML2_OK);
    CHECK_SAME(STATE_SIZE * QUARTER, parts[i].points.state, serial.points.state + STATE_SIZE * parts[i].first);
    viscoplastic_free(&parts[i].points);
  }
  print_points("state", 1, STATE_SIZE, STATE_SIZE, serial.points.state);
  print_points("state", 1, STATE_SIZE, STATE_SIZE, serial.points.state + STATE_SIZE * (N - 1));

  viscoplastic_free(&serial.points);
  neml2_model_free(&model);
  return scenario_end();
}
