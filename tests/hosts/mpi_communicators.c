/* What neml2_capi_mpi.h says over several communicators. Rank 0 prints a line per rank: its rank and the number of
 * ranks in the world, among the ranks of its parity, in the world reversed, and alone; and the device of three that it
 * keeps by its rank in the world reversed. */
#include "../c/check.h"
#include "neml2_capi_mpi.h"

enum { VALUES = 9 };

static neml2_scheduler *scheduler_of(int devices) {
  neml2_scheduler *scheduler = NULL;
  REQUIRE_OK(neml2_scheduler_create(&scheduler));
  for (int i = 0; i < devices; ++i) {
    REQUIRE_OK(
        neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CUDA, .device_index = i, .batch_size = 100)));
  }
  return scheduler;
}

static int64_t devices_of(const neml2_scheduler *scheduler) {
  int64_t count = -1;
  CHECK_OK(neml2_scheduler_count(&count, scheduler));
  return count;
}

/* A device for each rank, but no more: a rank without a scheduler fails all, and so does one with too many devices. */
static void keep(int rank, int ranks) {
  neml2_scheduler *scheduler = scheduler_of(rank == 0 ? ranks + 1 : 1);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_mpi_keep_rank(scheduler, MPI_COMM_WORLD));
  if (rank > 0) CHECK_SAYS("another rank of the communicator has failed");
  CHECK(devices_of(scheduler) == (rank == 0 ? ranks + 1 : 1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_mpi_keep_rank(rank == 0 ? NULL : scheduler, MPI_COMM_WORLD));
  CHECK(devices_of(scheduler) == (rank == 0 ? ranks + 1 : 1));
  neml2_scheduler_free(&scheduler);

  scheduler = scheduler_of(2);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_mpi_keep_rank(scheduler, MPI_COMM_SELF));
  CHECK(devices_of(scheduler) == 2);
  neml2_scheduler_free(&scheduler);
}

static int64_t kept_of(int devices, MPI_Comm comm) {
  neml2_scheduler *scheduler = scheduler_of(devices);
  CHECK_OK(neml2_mpi_keep_rank(scheduler, comm));
  CHECK(devices_of(scheduler) == 1);
  const neml2_device device = device_info(scheduler, 0);
  const int64_t number = device.device == NEML2_DEVICE_CUDA ? device.device_index : -1;
  neml2_scheduler_free(&scheduler);
  return number;
}

/* All have the status of the last rank, or of the first if that is worse. */
static void agree(int rank, int ranks) {
  const int last = rank == ranks - 1;
  CHECK_OK(neml2_mpi_worst_status(NEML2_OK, MPI_COMM_WORLD));
  CHECK_STATUS(NEML2_SINGULAR, neml2_mpi_worst_status(last ? NEML2_SINGULAR : NEML2_NON_FINITE, MPI_COMM_WORLD));
  if (!last) CHECK_SAYS("cut the step");
  const int32_t own = rank == 0 ? NEML2_ERROR_FILE : last ? NEML2_SINGULAR : NEML2_OK;
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_mpi_worst_status(own, MPI_COMM_WORLD));
  if (rank != 0) CHECK_SAYS("another rank of the communicator has failed");
  CHECK_STATUS(own, neml2_mpi_worst_status(own, MPI_COMM_SELF));
}

static void refuse(void) {
  int64_t untouched = 7;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_mpi_local_rank(&untouched, NULL, MPI_COMM_NULL));
  CHECK_SAYS("MPI_COMM_NULL");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_mpi_worst_status(NEML2_OK, MPI_COMM_NULL));
  CHECK(untouched == 7);
}

int main(int argc, char **argv) {
  int rank = 0, ranks = 0;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_mpi_worst_status(NEML2_OK, MPI_COMM_WORLD));
  CHECK_SAYS("call MPI_Init first");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  MPI_Comm parity, reversed;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &parity);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  const MPI_Comm communicators[] = {MPI_COMM_WORLD, parity, reversed, MPI_COMM_SELF};
  int64_t values[VALUES];
  for (int i = 0; i < 4; ++i) CHECK_OK(neml2_mpi_local_rank(values + 2 * i, values + 2 * i + 1, communicators[i]));
  values[VALUES - 1] = kept_of(ranks < 3 ? ranks : 3, reversed);
  keep(rank, ranks);
  agree(rank, ranks);
  refuse();

  int64_t *all = malloc((size_t)ranks * sizeof values);
  if (!all) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Gather(values, VALUES, MPI_INT64_T, all, VALUES, MPI_INT64_T, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < ranks * VALUES; ++i)
    printf("%lld%c", (long long)all[i], (i + 1) % VALUES ? ' ' : '\n');
  free(all);
  MPI_Comm_free(&parity);
  MPI_Comm_free(&reversed);
  MPI_Finalize();
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_mpi_local_rank(NULL, NULL, MPI_COMM_WORLD));
  CHECK_SAYS("MPI was finalized before");
  return CHECK_RESULT();
}
