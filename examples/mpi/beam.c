/* A beam in bending, whose elements are distributed over the ranks of MPI.
 *
 *   mpiexec -n 4 example_mpi_c ARTIFACT FILE [DEVICE...]
 *
 * Each rank has a contiguous block of the elements, with their Gauss points, and a model of its own; of the devices,
 * "cpu" unless some are named, each of the ranks of a node keeps one. If points of one rank fail, all cut the step.
 * Rank 0 gathers the states: it prints the bending moment, and writes the states of all points to FILE, as doubles.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "neml2_capi_mpi.h"

/* The mesh: equal bricks, ordered by their distance from the neutral plane x = 0. Lengths in mm. */
enum { NX = 7, NY = 4, NZ = 5, ELEMENTS = NX * NY * NZ, NODES = 8, GAUSS_POINTS = 8 };
static const double size[3] = {10.0 / NX, 8.0 / NY, 20.0 / NZ};
static const double corners[NODES][3] = {{-1, -1, -1}, {1, -1, -1}, {1, 1, -1}, {-1, 1, -1},
                                         {-1, -1, 1},  {1, -1, 1},  {1, 1, 1},  {-1, 1, 1}};

/* Bent to and fro; in 1/mm, and s. */
enum { STEPS = 4 };
static const double times[STEPS + 1] = {0, 5, 10, 15, 20}, curvatures[STEPS + 1] = {0, 1e-3, 1e-2, -1e-2, 0};

/* The state of one point: stress, equivalent plastic strain and two back stresses, side by side. */
enum { STRESS = 0, PLASTIC_STRAIN = 6, X1 = 7, X2 = 13, STATE_SIZE = 19 };

/* The points of one rank. The arrays are bound once: each run reads and writes them where they are. */
typedef struct {
  int64_t n;
  double time, old_time;
  double *unit; /* the strain at a curvature of 1 */
  double *strain, *old_strain, *state, *old_state;
  int32_t *status;
} points;

/* The displacement of a beam whose curvature is 1. Plastic flow keeps the volume. */
static void bend(const double x[3], double u[3]) {
  const double poisson = 0.5;
  u[0] = (x[2] * x[2] + poisson * (x[0] * x[0] - x[1] * x[1])) / 2;
  u[1] = poisson * x[0] * x[1];
  u[2] = -x[0] * x[2];
}

/* The strain at Gauss point `g` of `element` from the displacements of its nodes. Mandel notation:
 * xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy. */
static void strain_at(int element, int g, double strain[6]) {
  const int place[3] = {element / (NY * NZ), element / NZ % NY, element % NZ};
  double gradient[3][3] = {{0}};
  for (int a = 0; a < NODES; ++a) {
    double x[3], u[3], factor[3];
    for (int i = 0; i < 3; ++i) {
      x[i] = size[i] * (place[i] + (1 + corners[a][i]) / 2);
      factor[i] = 1 + corners[a][i] * corners[g][i] / sqrt(3.0);
    }
    bend(x, u);
    for (int j = 0; j < 3; ++j) {
      const double slope = corners[a][j] * factor[(j + 1) % 3] * factor[(j + 2) % 3] / (4 * size[j]);
      for (int i = 0; i < 3; ++i) gradient[i][j] += u[i] * slope;
    }
  }
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    strain[i] = gradient[i][i];
    strain[3 + i] = sqrt(0.5) * (gradient[j][k] + gradient[k][j]);
  }
}

/* Zeros; a rank without points has room for one, since an array is to be somewhere. */
static void *zeros(int64_t count, size_t bytes) {
  void *values = calloc((size_t)(count > 0 ? count : 1), bytes);
  if (!values) MPI_Abort(MPI_COMM_WORLD, 1);
  return values;
}

static double *doubles(int64_t count) { return zeros(count, sizeof(double)); }

static points points_of(int first_element, int elements) {
  points p = {.n = GAUSS_POINTS * (int64_t)elements};
  p.unit = doubles(6 * p.n);
  p.strain = doubles(6 * p.n);
  p.old_strain = doubles(6 * p.n);
  p.state = doubles(STATE_SIZE * p.n);
  p.old_state = doubles(STATE_SIZE * p.n);
  p.status = zeros(p.n, sizeof *p.status);
  for (int64_t i = 0; i < p.n; ++i)
    strain_at(first_element + (int)(i / GAUSS_POINTS), (int)(i % GAUSS_POINTS), p.unit + 6 * i);
  return p;
}

static void free_points(points *p) {
  free(p->unit);
  free(p->strain);
  free(p->old_strain);
  free(p->state);
  free(p->old_state);
  free(p->status);
}

static int32_t bind(neml2_call *call, points *p) {
  const struct {
    const char *name, *old_name;
    int offset;
  } variables[] = {{"stress", "stress~1", STRESS},
                   {"equivalent_plastic_strain", "equivalent_plastic_strain~1", PLASTIC_STRAIN},
                   {"X1", "X1~1", X1},
                   {"X2", "X2~1", X2}};
  int32_t status = neml2_call_bind(call, NEML2_INPUT, "t", &p->time, NEML2_FLOAT64, 0);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "t~1", &p->old_time, NEML2_FLOAT64, 0);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain", p->strain, NEML2_FLOAT64, 6);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain~1", p->old_strain, NEML2_FLOAT64, 6);
  for (int i = 0; i < 4 && status == NEML2_OK; ++i) {
    const int offset = variables[i].offset;
    status =
        neml2_call_bind(call, NEML2_INPUT, variables[i].old_name, p->old_state + offset, NEML2_FLOAT64, STATE_SIZE);
    if (status == NEML2_OK)
      status = neml2_call_bind(call, NEML2_OUTPUT, variables[i].name, p->state + offset, NEML2_FLOAT64, STATE_SIZE);
  }
  if (status == NEML2_OK) status = neml2_call_bind_report(call, NEML2_REPORT_STATUS, p->status, 1);
  return status;
}

/* Make the values of this step the previous ones. */
static void accept(points *p) {
  p->old_time = p->time;
  for (int64_t i = 0; i < 6 * p->n; ++i) p->old_strain[i] = p->strain[i];
  for (int64_t i = 0; i < STATE_SIZE * p->n; ++i) p->old_state[i] = p->state[i];
}

/* Say on rank 0 how many points of all ranks failed. Collective. */
static void tell_cut(const points *p, int rank) {
  int64_t failed = 0, of_all = 0;
  for (int64_t i = 0; i < p->n; ++i) failed += p->status[i] != NEML2_OK;
  MPI_Reduce(&failed, &of_all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("the step to %g s is cut: %lld points failed\n", p->time, (long long)of_all);
}

/* Bring the points of all ranks through one step: at once if they converge, else in smaller steps, which are the same
 * on all ranks. Collective. */
static int32_t advance(neml2_call *call, points *p, int step, int rank) {
  const double start = times[step - 1], from = curvatures[step - 1];
  double done = 0, part = 1; /* fractions of the step */
  while (done < 1) {
    const double s = done + part, curvature = (1 - s) * from + s * curvatures[step];
    p->time = (1 - s) * start + s * times[step];
    for (int64_t i = 0; i < 6 * p->n; ++i) p->strain[i] = curvature * p->unit[i];

    const int32_t status = neml2_mpi_worst_status(neml2_call_run(call, p->n), MPI_COMM_WORLD);
    if (status < 0) return status;
    if (status > 0) {
      tell_cut(p, rank);
      part /= 2;
      if (part < 1.0 / 64) return status;
      continue;
    }
    accept(p);
    done = s;
    if (part > 1 - done) part = 1 - done;
  }
  return NEML2_OK;
}

/* The moment of the stresses in a mean cross section, in N mm. */
static double bending_moment(const double *states) {
  double moment = 0;
  for (int i = 0; i < GAUSS_POINTS * ELEMENTS; ++i) {
    const double x = size[0] * (i / GAUSS_POINTS / (NY * NZ) + (1 + corners[i % GAUSS_POINTS][0] / sqrt(3.0)) / 2);
    moment -= states[STATE_SIZE * (int64_t)i + STRESS + 2] * x * (size[0] * size[1] / GAUSS_POINTS / NZ);
  }
  return moment;
}

/* The number of elements before the first of `rank`. */
static int first_element(int rank, int ranks) { return ELEMENTS * rank / ranks; }

/* Gather the states of all points on rank 0, in their order. Collective. */
static void gather(const points *p, double *states, int ranks) {
  int *counts = zeros(ranks, sizeof *counts), *begins = zeros(ranks, sizeof *begins);
  for (int r = 0; r < ranks; ++r) {
    begins[r] = STATE_SIZE * GAUSS_POINTS * first_element(r, ranks);
    counts[r] = STATE_SIZE * GAUSS_POINTS * first_element(r + 1, ranks) - begins[r];
  }
  MPI_Gatherv(p->state, STATE_SIZE * (int)p->n, MPI_DOUBLE, states, counts, begins, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  free(counts);
  free(begins);
}

/* The model on the device of this rank, and a call over its points. Collective: each part is done on all ranks, or
 * fails on all. */
static int32_t open_model(neml2_model **model, neml2_call **call, points *p, const char *root, int ndevices,
                          char **devices) {
  neml2_source source = {.size = sizeof source, .path = root};
  neml2_scheduler *scheduler = NULL;
  int32_t status = neml2_scheduler_create(&scheduler);
  for (int i = 0; i < (ndevices > 0 ? ndevices : 1) && status == NEML2_OK; ++i) {
    neml2_device device = {.size = sizeof device, .batch_size = 4096}; /* the CPU, or what "cuda:1" says */
    if (ndevices > 0 && sscanf(devices[i], "cuda:%" SCNd32, &device.device_index) == 1)
      device.device = NEML2_DEVICE_CUDA;
    status = neml2_scheduler_add(scheduler, &device);
  }
  status = neml2_mpi_worst_status(status, MPI_COMM_WORLD);
  if (status == NEML2_OK) status = neml2_mpi_keep_rank(scheduler, MPI_COMM_WORLD);
  if (status == NEML2_OK) {
    source.scheduler = scheduler;
    status = neml2_model_open(model, &source);
    if (status == NEML2_OK) status = neml2_call_create(call, *model);
    if (status == NEML2_OK) status = bind(*call, p);
    status = neml2_mpi_worst_status(status, MPI_COMM_WORLD);
  }
  neml2_scheduler_free(&scheduler);
  return status;
}

static int write_states(const char *path, const double *states) {
  const size_t count = STATE_SIZE * GAUSS_POINTS * ELEMENTS;
  FILE *file = fopen(path, "wb");
  const int written = file && fwrite(states, sizeof *states, count, file) == count;
  if (!file || fclose(file) != 0 || !written) {
    fprintf(stderr, "%s cannot be written\n", path);
    return 0;
  }
  return 1;
}

int main(int argc, char **argv) {
  int rank = 0, ranks = 0, well = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3) {
    if (rank == 0) fprintf(stderr, "usage: mpiexec -n RANKS %s ARTIFACT FILE [DEVICE...]\n", argv[0]);
    MPI_Finalize();
    return 2;
  }

  const int first = first_element(rank, ranks);
  points p = points_of(first, first_element(rank + 1, ranks) - first);
  double *states = doubles(rank == 0 ? STATE_SIZE * GAUSS_POINTS * ELEMENTS : 0);
  neml2_model *model = NULL;
  neml2_call *call = NULL;
  int32_t status = open_model(&model, &call, &p, argv[1], argc - 3, argv + 3);
  for (int step = 1; step <= STEPS && status == NEML2_OK; ++step) {
    status = advance(call, &p, step, rank);
    if (status != NEML2_OK) break;
    gather(&p, states, ranks);
    if (rank == 0)
      printf("at %g s: curvature %g /mm, moment %.6g N mm\n", times[step], curvatures[step], bending_moment(states));
  }

  if (status != NEML2_OK) {
    char message[1024];
    neml2_error_message(message, sizeof message, NULL);
    fprintf(stderr, "rank %d: %s\n", rank, message);
  } else if (rank == 0) {
    well = write_states(argv[2], states);
  }
  neml2_call_free(&call);
  neml2_model_free(&model);
  free(states);
  free_points(&p);
  MPI_Finalize();
  return status == NEML2_OK && well ? 0 : 1;
}
