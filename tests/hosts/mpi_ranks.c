/* An MPI host: every rank loads the model and takes an equal part of the points; rank 0 gathers their states: the same
 * as one call over all points. */
#define _GNU_SOURCE
#include <mpi.h>

#include "../scenarios/scenario.h"

enum { N = 64, STEPS = 5 };

/* The states of `n` points, counted from `first`, after all steps; freed by the caller. */
static viscoplastic_block run_cycle(const neml2_model *model, int64_t first, int64_t n) {
  viscoplastic_block b = viscoplastic_create(n);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  for (int k = 1; k <= STEPS; ++k) {
    cycle_load(&b, first, k);
    CHECK_OK(neml2_call_run(call, n));
    viscoplastic_accept(&b);
  }
  neml2_call_free(&call);
  return b;
}

int main(int argc, char **argv) {
  int ranks = 0, rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  scenario_begin();
  neml2_model *model = load(artifact("viscoplastic"));
  const int n = N / ranks;
  CHECK(n * ranks == N);

  viscoplastic_block own = run_cycle(model, rank * n, n);
  double *gathered = doubles(rank == 0 ? STATE_SIZE * N : 0);
  MPI_Gather(own.state, STATE_SIZE * n, MPI_DOUBLE, gathered, STATE_SIZE * n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    viscoplastic_block serial = run_cycle(model, 0, N);
    CHECK_SAME(STATE_SIZE * N, gathered, serial.state);
    print_points("state", N, STATE_SIZE, STATE_SIZE, gathered);
    viscoplastic_free(&serial);
  }

  free(gathered);
  viscoplastic_free(&own);
  neml2_model_free(&model);
  const int result = scenario_end();
  MPI_Finalize();
  return result;
}
