/* A finite-element host: 8 OpenMP threads take elements as they come, and share one model. The results equal one
 * call over all points. */
#define _GNU_SOURCE
#include <omp.h>

#include "../scenarios/scenario.h"

enum { ELEMENTS = 64, POINTS = 8, N = ELEMENTS * POINTS, THREADS = 8, STEPS = 5 };

/* Elements have eight different loads, some of which are elastic: they take unequal times. */
static void load_element(viscoplastic_block *element, int e, int k) { cycle_load(element, POINTS * (e % 8), k); }

/* Bring an element from the state that it has in the mesh to step k. */
static int32_t advance(neml2_call *call, viscoplastic_block *element, viscoplastic_block *mesh, int e, int k) {
  double *strain = mesh->strain + 6 * POINTS * e, *state = mesh->state + STATE_SIZE * POINTS * e;
  memcpy(element->old_strain, strain, 6 * POINTS * sizeof *strain);
  memcpy(element->old_state, state, STATE_SIZE * POINTS * sizeof *state);
  element->old_time = k - 1;
  load_element(element, e, k);
  const int32_t status = neml2_call_run(call, POINTS);
  memcpy(strain, element->strain, 6 * POINTS * sizeof *strain);
  memcpy(state, element->state, STATE_SIZE * POINTS * sizeof *state);
  return status;
}

static void run_in_parallel(const neml2_model *model, viscoplastic_block *mesh) {
  int threads = 0, failed = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : threads, failed)
  {
    viscoplastic_block element = viscoplastic_create(POINTS);
    neml2_call *call = viscoplastic_call(model, &element, 0);
    threads = 1;
    for (int k = 1; k <= STEPS; ++k) {
#pragma omp for schedule(dynamic)
      for (int e = 0; e < ELEMENTS; ++e) failed += advance(call, &element, mesh, e, k) != NEML2_OK;
    }
    neml2_call_free(&call);
    viscoplastic_free(&element);
  }
  CHECK(threads == THREADS && failed == 0);
}

static void run_serially(const neml2_model *model, viscoplastic_block *mesh) {
  neml2_call *call = viscoplastic_call(model, mesh, 0);
  for (int k = 1; k <= STEPS; ++k) {
    for (int e = 0; e < ELEMENTS; ++e) {
      viscoplastic_block element = {.n = POINTS, .strain = mesh->strain + 6 * POINTS * e};
      load_element(&element, e, k);
    }
    mesh->time = k;
    CHECK_OK(neml2_call_run(call, N));
    viscoplastic_accept(mesh);
  }
  neml2_call_free(&call);
}

int main(void) {
  scenario_begin();
  neml2_model *model = load(artifact("viscoplastic"));
  viscoplastic_block parallel = viscoplastic_create(N), serial = viscoplastic_create(N);
  omp_set_dynamic(0); /* as many threads as are asked for */
  run_in_parallel(model, &parallel);
  run_serially(model, &serial);
  CHECK_SAME(STATE_SIZE * N, parallel.state, serial.state);
  print_points("state", 8, STATE_SIZE, STATE_SIZE * POINTS, parallel.state);

  viscoplastic_free(&parallel);
  viscoplastic_free(&serial);
  neml2_model_free(&model);
  return scenario_end();
}
