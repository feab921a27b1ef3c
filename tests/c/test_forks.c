/* Threads do all that the library offers while the process forks: each child goes on with the model of its parent.
 *
 * test_forks [FORKS]    how often, 100 unless it is said
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "materials.h"

enum { THREADS = 4, POINTS = 3, MANY = 3000, FOR_EVER = 120 /* seconds */ };

static const char *path;
static neml2_model *model, *shared; /* the second one's calls are spread over threads */
static int stop;

/* A thread of the parent is in each of these functions when the process forks, or in none. They return whether all went
 * well. */

static int set_parameter(int k) {
  const int64_t shape[1] = {POINTS};
  double young[POINTS] = {YOUNG + k % 5, YOUNG + k % 5, YOUNG + k % 5};
  neml2_tensor *value = NULL;
  int good = neml2_tensor_wrap(&value, young, NEML2_FLOAT64, k % 2, shape, NULL, NULL, NULL) == NEML2_OK;
  neml2_variable_info info = {.size = sizeof info};
  good = good && neml2_model_variable_inspect(&info, model, NEML2_PARAMETER, 0) == NEML2_OK;
  good = good && neml2_model_parameter_set(model, info.name, value) == NEML2_OK;
  neml2_tensor_free(&value);
  return good;
}

/* Some modulus that was set: all points have it, in a snapshot that is whole. */
static int is_right(int64_t n, const double *strain, const double *stress) {
  double expected[6];
  hooke(1, YOUNG, strain, expected);
  const double factor = stress[0] / expected[0];
  int good = factor > 1 - 1e-9 && factor < 1 + 5 / YOUNG;
  for (int64_t p = 0; p < n; ++p) {
    hooke(1, factor * YOUNG, strain + 6 * p, expected);
    for (int i = 0; i < 6; ++i) good = good && fabs(stress[6 * p + i] - expected[i]) < 1e-9;
  }
  return good;
}

static int run(const neml2_model *of, int64_t n) {
  double *strain = doubles(6 * n), *stress = doubles(6 * n);
  some_strains(n, strain);
  neml2_call *call = NULL;
  int good = neml2_call_create(&call, of) == NEML2_OK;
  good = good && neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6) == NEML2_OK;
  good = good && neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6) == NEML2_OK;
  good = good && neml2_call_run(call, n) == NEML2_OK && is_right(n, strain, stress);
  neml2_call_free(&call);
  free(strain);
  free(stress);
  return good;
}

static int run_call(int k) {
  (void)k;
  return run(model, POINTS);
}

static int run_on_threads(int k) {
  (void)k;
  return run(shared, MANY);
}

static int forward(int k) {
  (void)k;
  const int64_t shape[2] = {POINTS, 6};
  neml2_tensor *input = NULL, *output = NULL;
  int good = neml2_tensor_create(&input, NEML2_FLOAT64, 2, shape) == NEML2_OK;
  if (good) some_strains(POINTS, tensor_values(input));
  good = good && neml2_model_forward(&output, NULL, model, &input, NULL) == NEML2_OK;
  good = good && is_right(POINTS, tensor_values(input), tensor_values(output));
  neml2_tensor_free(&input);
  neml2_tensor_free(&output);
  return good;
}

static int set_options(int k) {
  char folder[64];
  snprintf(folder, sizeof folder, "/no/such/folder/%d", k % 7);
  double atol = 0;
  return neml2_model_option_set_number(model, "atol", 1e-10 * (1 + k % 9)) == NEML2_OK &&
         neml2_model_option_get_number(&atol, model, "atol") == NEML2_OK &&
         neml2_model_option_set_text(shared, "capsule", folder) == NEML2_OK &&
         neml2_model_option_set_text(shared, "capsule", "") == NEML2_OK;
}

static int open_and_run(int k) {
  neml2_model *own = NULL;
  int good = neml2_model_open(&own, SOURCE(.path = path)) == NEML2_OK;
  good = good && neml2_model_option_set_text(own, "kernels", k % 2 ? "auto" : "off") == NEML2_OK;
  good = good && run(own, POINTS);
  neml2_model_free(&own);
  return good;
}

static int write_log(int k) {
  int32_t level = 0;
  char text[256];
  int good = neml2_log_level_set("all", k % 2 ? NEML2_LOG_DEBUG : NEML2_LOG_WARNING) == NEML2_OK;
  neml2_call *call = NULL;
  good = good && neml2_call_create(&call, NULL) == NEML2_ERROR_ARGUMENT;
  neml2_model *own = NULL;
  good = good && neml2_model_open(&own, SOURCE(.path = "/no/such/artifact")) == NEML2_ERROR_FILE;
  do good = good && neml2_log_next(&level, NULL, text, sizeof text, NULL) == NEML2_OK;
  while (good && level != NEML2_LOG_SILENT);
  return good;
}

static int32_t nothing(void *context, neml2_operator_call *call) {
  (void)context, (void)call;
  return NEML2_OK;
}

static int32_t go_on(void *context) {
  (void)context;
  return 0;
}

static int set_functions(int k) {
  char schema[64];
  snprintf(schema, sizeof schema, "forks::of_%d_%d(Tensor x) -> Tensor", (int)getpid(), k);
  return neml2_operator_register(schema, nothing, NULL) == NEML2_OK && neml2_operator_unregister(schema) == NEML2_OK &&
         neml2_interrupt_set(k % 2 ? go_on : NULL, NULL) == NEML2_OK;
}

static const struct {
  const char *name;
  int (*run)(int k);
} all[] = {{"set a parameter", set_parameter}, {"run a call", run_call},        {"evaluate", forward},
           {"run on threads", run_on_threads}, {"set options", set_options},    {"open a model", open_and_run},
           {"write to the log", write_log},    {"set functions", set_functions}};
enum { KINDS = sizeof all / sizeof *all };

static void *work(void *argument) {
  const int *number = argument;
  int wrong = 0;
  for (int k = *number; !__atomic_load_n(&stop, __ATOMIC_RELAXED); k += THREADS)
    wrong += !all[(k / THREADS * 3 + k) % KINDS].run(k);
  return wrong ? argument : NULL;
}

/* Ends the child: 0, or 1 + the number of what failed. One that waits for ever is ended by a signal. */
static void go_on_in_child(void) {
  alarm(FOR_EVER);
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < KINDS; ++i)
      if (!all[i].run(2 * i + k)) {
        fprintf(stderr, "a child cannot %s: %s\n", all[i].name, check_message());
        _exit(1 + i);
      }
  neml2_model_free(&model);
  neml2_model_free(&shared);
  _exit(0);
}

int main(int count, char **arguments) {
  const int forks = count > 1 ? atoi(arguments[1]) : 100;
  path = artifact("elasticity");
  model = load(path);
  shared = load(path);
  CHECK_OK(neml2_model_option_set_number(shared, "threads", 4));
  CHECK_OK(neml2_model_option_set_number(shared, "chunk", 64));
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(threads + i, NULL, work, numbers + i) == 0);
  }
  int hung = 0, crashed = 0, failed = 0;
  for (int i = 0; i < forks && hung + crashed < 3; ++i) {
    const struct timespec pause = {0, 100000 + 37000 * (i % 40)};
    nanosleep(&pause, NULL);
    const pid_t child = fork();
    if (child == 0) go_on_in_child();
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    hung += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    crashed += WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM;
    failed += WIFEXITED(status) && WEXITSTATUS(status) != 0;
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < THREADS; ++i) {
    void *wrong = NULL;
    pthread_join(threads[i], &wrong);
    CHECK(!wrong);
  }
  if (hung + crashed + failed)
    fprintf(stderr, "of the children %d hung, %d crashed, %d failed\n", hung, crashed, failed);
  CHECK(hung + crashed + failed == 0);
  neml2_model_free(&model);
  neml2_model_free(&shared);
  return CHECK_RESULT();
}
