/* A model with a scheduler gives what it gives without one. If NEML2_CAPI_LIBTORCH is set, the built-in provider and
 * libtorch share the points, too.
 *   test_schedulers [DISPATCHES] */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <unistd.h>

#include "materials.h"

enum { N = 40, STEPS = 3 };

static neml2_scheduler *create(void) {
  neml2_scheduler *scheduler = NULL;
  REQUIRE_OK(neml2_scheduler_create(&scheduler));
  return scheduler;
}

static neml2_model *load_over(const char *root, neml2_scheduler *scheduler) {
  neml2_model *model = NULL;
  REQUIRE_OK(neml2_model_open(&model, SOURCE(.path = root, .scheduler = scheduler)));
  neml2_scheduler_free(&scheduler);
  return model;
}

static neml2_model *load_in_sub_batches(const char *root, int64_t batch_size) {
  neml2_scheduler *scheduler = create();
  REQUIRE_OK(
      neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = batch_size, .priority = 1.0)));
  return load_over(root, scheduler);
}

static int64_t points_evaluated(const neml2_model *model, int64_t index) {
  int64_t points = -1;
  CHECK_OK(neml2_model_points(&points, model, index));
  return points;
}

static void what_was_added_is_told(void) {
  neml2_scheduler *scheduler = create();
  int64_t count = -1;
  CHECK_OK(neml2_scheduler_count(&count, scheduler));
  CHECK(count == 0);
  CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.batch_size = 512, .priority = 1.5)));
  CHECK_OK(neml2_scheduler_add(scheduler,
                               DEVICE(.device = NEML2_DEVICE_CUDA, .device_index = 1, .runtime = NEML2_RUNTIME_TENSORS,
                                      .batch_size = 4096, .capacity = 5000, .priority = -2.0)));
  CHECK_OK(neml2_scheduler_count(&count, scheduler));
  CHECK(count == 2);
  const neml2_device cpu = device_info(scheduler, 0), cuda = device_info(scheduler, 1);
  CHECK(cpu.device == NEML2_DEVICE_CPU && cpu.runtime == NEML2_RUNTIME_AUTO);
  CHECK(cpu.batch_size == 512 && cpu.capacity == 1024 && cpu.priority == 1.5);
  CHECK(cuda.device == NEML2_DEVICE_CUDA && cuda.device_index == 1 && cuda.runtime == NEML2_RUNTIME_TENSORS);
  CHECK(cuda.batch_size == 4096 && cuda.capacity == 5000 && cuda.priority == -2.0);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_inspect(INFO(neml2_device), scheduler, 2));
  neml2_scheduler_free(&scheduler);
  CHECK(!scheduler);
}

static void what_cannot_be_added_is_refused(void) {
  neml2_scheduler *scheduler = create();
  int64_t count = -1;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = -1, .priority = 1.0)));
  CHECK_ABOUT("batch_size");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_add(scheduler, DEVICE(.batch_size = 10, .reserved = 1)));
  CHECK_ABOUT("reserved");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = 10,
                                                                           .capacity = 9, .priority = 1.0)));
  CHECK_ABOUT("capacity");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = 10,
                                                                           .capacity = -1, .priority = 1.0)));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = 10,
                                                                           .priority = INFINITY)));
  CHECK_ABOUT("priority");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_add(scheduler, DEVICE(.device = 3, .batch_size = 10)));
  CHECK_ABOUT("device");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_add(scheduler, DEVICE(.device_index = 1, .batch_size = 10)));
  CHECK_ABOUT("device_index");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_add(scheduler, DEVICE(.runtime = 4, .batch_size = 10)));
  CHECK_ABOUT("runtime");
  CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CUDA, .batch_size = 10, .priority = 1.0)));
  CHECK_STATUS(
      NEML2_ERROR_ARGUMENT,
      neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CUDA, .device_index = 0,
                                            .runtime = NEML2_RUNTIME_LIBTORCH, .batch_size = 10, .priority = 1.0)));
  CHECK_ABOUT("device");
  CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .runtime = NEML2_RUNTIME_BUILTIN,
                                                 .batch_size = 10, .priority = 1.0)));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = 10, .priority = 1.0)));
  CHECK_SAYS("cpu (runtime builtin) already");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .runtime = NEML2_RUNTIME_BUILTIN,
                                                     .batch_size = 20, .priority = 2.0)));
  CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .runtime = NEML2_RUNTIME_LIBTORCH,
                                                 .batch_size = 10, .priority = 1.0)));
  CHECK_OK(neml2_scheduler_count(&count, scheduler));
  CHECK(count == 3);
  neml2_scheduler_free(&scheduler);
}

static void a_model_needs_devices_with_batch_sizes(void) {
  neml2_scheduler *scheduler = create();
  neml2_model *model = NULL;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_model_open(&model, SOURCE(.path = artifact("elasticity"), .scheduler = scheduler)));
  CHECK_ABOUT("scheduler");
  CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .batch_size = 10, .priority = 1.0)));
  CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CUDA, .priority = 1.0)));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_model_open(&model, SOURCE(.path = artifact("elasticity"), .scheduler = scheduler)));
  CHECK_ABOUT("batch_size");
  CHECK_SAYS("cuda");
  CHECK(!model);
  neml2_scheduler_free(&scheduler);
}

static void a_process_keeps_one_device(void) {
  const int64_t expected[5] = {0, 1, -1, 0, 1}; /* of the CUDA devices, or the CPU */
  for (int64_t rank = 0; rank < 5; ++rank) {
    neml2_scheduler *scheduler = create();
    int64_t count = 0;
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_keep_rank(scheduler, 0, 1));
    CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CUDA, .device_index = 0, .priority = 1.0)));
    CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CUDA, .device_index = 1, .priority = 1.0)));
    CHECK_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .priority = 1.0)));
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_keep_rank(scheduler, rank, rank));
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_keep_rank(scheduler, -1, 5));
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_scheduler_keep_rank(scheduler, 0, 2));
    CHECK_SAYS("3 devices and this node 2 processes");
    CHECK_OK(neml2_scheduler_keep_rank(scheduler, rank, 5));
    CHECK_OK(neml2_scheduler_count(&count, scheduler));
    const neml2_device kept = device_info(scheduler, 0);
    CHECK(count == 1 && (kept.device == NEML2_DEVICE_CPU ? -1 : kept.device_index) == expected[rank]);
    neml2_scheduler_free(&scheduler);
  }
}

/* Two histories of the same points, compared after each step. */
static void check_histories(const neml2_model *model, const neml2_model *expected, double tolerance) {
  viscoplastic_block a = viscoplastic_create(N), b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &a, 0), *other = viscoplastic_call(expected, &b, 0);
  for (int k = 1; k <= STEPS; ++k) {
    viscoplastic_load(&a, k);
    viscoplastic_load(&b, k);
    CHECK_OK(neml2_call_run(call, N));
    CHECK_OK(neml2_call_run(other, N));
    if (tolerance == 0) {
      CHECK_SAME(STATE_SIZE * N, a.state, b.state);
      CHECK_SAME(N, a.residual_norm, b.residual_norm);
      CHECK_SAME(N, a.iterations, b.iterations);
    } else {
      CHECK_NEAR(STATE_SIZE * N, a.state, b.state, tolerance);
    }
    CHECK_SAME(N, a.status, b.status);
    viscoplastic_accept(&a);
    viscoplastic_accept(&b);
  }
  neml2_call_free(&call);
  neml2_call_free(&other);
  viscoplastic_free(&a);
  viscoplastic_free(&b);
}

static void one_device_gives_the_same(void) {
  neml2_model *alone = load(artifact("viscoplastic"));
  for (int64_t size = 0; size <= N + 1; size += size < 9 ? 1 : 8) {
    neml2_model *model = load_in_sub_batches(artifact("viscoplastic"), size);
    check_histories(model, alone, 0);
    CHECK(points_evaluated(model, 0) == STEPS * N);
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_points(&(int64_t){0}, model, 1));
    neml2_model_free(&model);
  }
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_points(&(int64_t){0}, alone, 0));
  CHECK_ABOUT("model");
  neml2_model_free(&alone);
}

/* A call that runs again evaluates its points again, and counts them. */
static void repeated_calls_are_counted(int64_t batch_size) {
  neml2_model *model = load_in_sub_batches(artifact("elasticity"), batch_size);
  double strain[6 * N], stress[6 * N], expected[6 * N];
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  for (int run = 1; run <= 5; ++run) {
    some_strains(N, strain);
    for (int i = 0; i < 6 * N; ++i) strain[i] *= run;
    hooke(N, YOUNG, strain, expected);
    CHECK_OK(neml2_call_run(call, N));
    CHECK_NEAR(6 * N, stress, expected, 1e-12);
    CHECK(points_evaluated(model, 0) == run * N);
  }
  CHECK_OK(neml2_call_run(call, 0));
  neml2_call_free(&call);
  CHECK_ELASTICITY(model);
  neml2_model_free(&model);
}

static void a_parameter_is_that_of_the_model(void) {
  const double modulus = 100e3;
  neml2_model *model = load_in_sub_batches(artifact("elasticity"), 2);
  neml2_tensor *value = tensor_over(&modulus, 0, NULL);
  CHECK_OK(neml2_model_parameter_set(model, "elasticity.E", value));
  CHECK_ELASTICITY_WITH(model, modulus);
  neml2_tensor_free(&value);
  neml2_model_free(&model);
}

static void parameters_vary_with_the_points(void) {
  neml2_model *model = load_in_sub_batches(artifact("elasticity"), 7);
  double strain[6 * N], stress[6 * N], expected[6 * N], moduli[N];
  neml2_call *call = NULL;
  some_strains(N, strain);
  for (int p = 0; p < N; ++p) {
    moduli[p] = 100e3 + 1e3 * p;
    hooke(1, moduli[p], strain + 6 * p, expected + 6 * p);
  }
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, "elasticity.E", moduli, NEML2_FLOAT64, 1));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(6 * N, stress, expected, 1e-12);
  neml2_call_free(&call);
  neml2_model_free(&model);
}

/* Part `index` of the last error. */
static void check_part(int64_t index, int32_t expected, const char *text) {
  char message[1024] = "";
  int32_t status = NEML2_OK;
  CHECK_OK(neml2_error_get(&status, NULL, message, sizeof message, NULL, index));
  CHECK(status == expected);
  if (!strstr(message, text)) fprintf(stderr, "  it lacks %s: %s\n", text, message);
  CHECK(strstr(message, text) != NULL);
}

static void failed_points_are_told_by_sub_batch(void) {
  neml2_model *model = load_in_sub_batches(artifact("viscoplastic"), 10);
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  viscoplastic_load(&b, 5);
  b.strain[6 * 12] = b.strain[6 * 15] = b.strain[6 * 31] = 1e200;
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, N));
  CHECK_SAYS("3 of 40 points did not converge (the first is point 12)");
  CHECK(error_count() == 2);
  check_part(0, NEML2_NOT_CONVERGED, "points 10 to 19 on cpu (builtin): 2 of 10 points did not converge");
  check_part(1, NEML2_NOT_CONVERGED, "points 30 to 39 on cpu (builtin): 1 of 10 points did not converge");
  for (int p = 0; p < N; ++p) CHECK((b.status[p] != NEML2_OK) == (p == 12 || p == 15 || p == 31));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_error_get(NULL, NULL, NULL, 0, NULL, 2));
  /* That is an error itself, and the only one now. */
  CHECK(error_count() == 1);
  check_part(0, NEML2_ERROR_ARGUMENT, "there is none at 2");

  b.strain[6 * 12] = b.strain[6 * 15] = 0;
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, N));
  CHECK(error_count() == 1);
  check_part(0, NEML2_NOT_CONVERGED, "1 of 10 points");
  b.strain[6 * 31] = 0;
  CHECK_OK(neml2_call_run(call, N));
  neml2_call_free(&call);
  viscoplastic_free(&b);
  neml2_model_free(&model);
}

static void a_solve_is_for_one_device(neml2_model *model, int32_t expected) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS] = {NULL};
  neml2_call *call = viscoplastic_call(model, &b, 0);
  neml2_solve *solve = NULL;
  viscoplastic_tensors(model, &b, inputs);
  CHECK_STATUS(expected, neml2_solve_begin(&solve, model, inputs, NULL));
  neml2_solve_free(&solve);
  CHECK_STATUS(expected, neml2_solve_begin_call(&solve, call, N));
  if (expected != NEML2_OK) CHECK_SAYS("without a scheduler");
  neml2_solve_free(&solve);
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&inputs[i]);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

/* ---- The built-in provider and libtorch ---- */

static neml2_model *load_hybrid(const char *root, int64_t builtin_size, int32_t other, int64_t other_size) {
  neml2_scheduler *scheduler = create();
  REQUIRE_OK(neml2_scheduler_add(scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .runtime = NEML2_RUNTIME_BUILTIN,
                                                   .batch_size = builtin_size, .priority = 1.0)));
  REQUIRE_OK(neml2_scheduler_add(
      scheduler, DEVICE(.device = NEML2_DEVICE_CPU, .runtime = other, .batch_size = other_size, .priority = 1.0)));
  return load_over(root, scheduler);
}

static void runtimes_share_the_points(int32_t other) {
  neml2_model *alone = load(artifact("viscoplastic"));
  for (int64_t size = 1; size <= N; size += size < 4 ? 1 : 12) {
    neml2_model *model = load_hybrid(artifact("viscoplastic"), size, other, 7);
    check_histories(model, alone, 1e-9);
    CHECK(points_evaluated(model, 0) + points_evaluated(model, 1) == STEPS * N);
    neml2_model_free(&model);
  }
  neml2_model_free(&alone);
}

typedef struct {
  const neml2_model *model;
  int64_t runs, good, failed, other;
} worker;

static void *dispatch_again_and_again(void *argument) {
  worker *w = argument;
  viscoplastic_block b = viscoplastic_create(4);
  neml2_call *call = viscoplastic_call(w->model, &b, 0);
  viscoplastic_load(&b, 1);
  for (int64_t k = 0; k < w->runs; ++k) {
    const double kept = b.strain[6 * (k % 4)];
    if (k % 3 == 0) b.strain[6 * (k % 4)] = 1e200;
    const int32_t status = neml2_call_run(call, 4);
    if (status == NEML2_OK) ++w->good;
    if (status == NEML2_NOT_CONVERGED) ++w->failed;
    if (status < NEML2_OK) ++w->other;
    b.strain[6 * (k % 4)] = kept;
  }
  neml2_call_free(&call);
  viscoplastic_free(&b);
  return NULL;
}

static int64_t resident_kib(void) {
  long long pages = 0;
  FILE *memory = fopen("/proc/self/statm", "r");
  if (!memory || fscanf(memory, "%*d %lld", &pages) != 1) exit(2);
  fclose(memory);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Several threads at once, some of whose points fail: all end, and memory stays as it is. */
static void dispatches_leave_nothing_behind(neml2_model *model, int64_t dispatches) {
  enum { THREADS = 3 };
  int64_t before = 0;
  for (int round = 0; round < 2; ++round) { /* the first fills the caches */
    pthread_t threads[THREADS];
    worker workers[THREADS];
    before = resident_kib();
    for (int i = 0; i < THREADS; ++i) {
      workers[i] = (worker){model, (round == 0 ? dispatches / 5 : dispatches) / THREADS + 1, 0, 0, 0};
      pthread_create(&threads[i], NULL, dispatch_again_and_again, &workers[i]);
    }
    for (int i = 0; i < THREADS; ++i) {
      pthread_join(threads[i], NULL);
      CHECK(workers[i].failed == (workers[i].runs + 2) / 3 && workers[i].other == 0);
      CHECK(workers[i].good == workers[i].runs - workers[i].failed);
    }
  }
  printf("resident before %lld KiB, after %lld dispatches %lld KiB\n", (long long)before, (long long)dispatches,
         (long long)resident_kib());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(resident_kib() - before < 1024);
#endif
}

int main(int argc, char **argv) {
  const char *place = getenv("NEML2_CAPI_LIBTORCH");
  const int64_t dispatches = argc > 1 ? atoll(argv[1]) : 10000;
  neml2_model *model = NULL;
  what_was_added_is_told();
  what_cannot_be_added_is_refused();
  a_model_needs_devices_with_batch_sizes();
  a_process_keeps_one_device();
  one_device_gives_the_same();
  repeated_calls_are_counted(0);
  repeated_calls_are_counted(N);
  repeated_calls_are_counted(7);
  a_parameter_is_that_of_the_model();
  parameters_vary_with_the_points();
  failed_points_are_told_by_sub_batch();
  model = load_in_sub_batches(artifact("viscoplastic"), 3);
  a_solve_is_for_one_device(model, NEML2_OK);
  dispatches_leave_nothing_behind(model, dispatches);
  neml2_model_free(&model);
  if (place && *place) {
    runtimes_share_the_points(NEML2_RUNTIME_LIBTORCH);
    runtimes_share_the_points(NEML2_RUNTIME_TENSORS);
    model = load_hybrid(artifact("viscoplastic"), 1, NEML2_RUNTIME_LIBTORCH, 2);
    a_solve_is_for_one_device(model, NEML2_ERROR_UNSUPPORTED);
    dispatches_leave_nothing_behind(model, dispatches);
    neml2_model_free(&model);
  }
  return CHECK_RESULT();
}
