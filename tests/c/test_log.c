/* What the library tells of its work waits in a queue, at the level of each channel, and nothing is printed.
 *
 * With the argument "print", the records of one step of one point are printed, to be compared with other languages. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "materials.h"

enum { N = 3, THREADS = 4, RUNS = 20 };

typedef struct {
  int32_t level;
  const char *channel;
  char message[NEML2_LOG_LENGTH];
} record;

/* The oldest record; false if none waits. */
static int next(record *r) {
  CHECK_OK(neml2_log_next(&r->level, &r->channel, r->message, sizeof r->message, NULL));
  return r->level != NEML2_LOG_SILENT;
}

/* Take all that wait, and return how many; the last one of `channel` is left in `r`. */
static int take(record *r, const char *channel) {
  int taken = 0;
  for (record each; next(&each); ++taken)
    if (strcmp(each.channel, channel) == 0) *r = each;
  return taken;
}

static int32_t level_of(const char *channel) {
  int32_t level = -1;
  CHECK_OK(neml2_log_level_get(&level, channel));
  return level;
}

static void set(const char *channel, int32_t level) { CHECK_OK(neml2_log_level_set(channel, level)); }

static int64_t waiting(void) {
  int64_t count = -1;
  CHECK_OK(neml2_log_count(&count));
  return count;
}

/* ---- NEML2_LOGS: each in a process of its own, for it is read once ---- */

typedef struct {
  const char *text;
  int32_t newton, substep, others;
  const char *misunderstood; /* or NULL */
} setting;

static void levels_are(const setting *s) {
  CHECK(level_of("newton") == s->newton);
  CHECK(level_of("substep") == s->substep);
  CHECK(level_of("model") == s->others && level_of("driver") == s->others);
  record r;
  CHECK(next(&r) == (s->misunderstood != NULL));
  if (!s->misunderstood) return;
  CHECK(r.level == NEML2_LOG_WARNING && strcmp(r.channel, "model") == 0);
  CHECK(strstr(r.message, s->misunderstood) && strstr(r.message, "Expected channel=level"));
  CHECK(!next(&r));
}

static void the_environment_names_levels(void) {
  const setting settings[] = {
      {NULL, 1, 1, 1, NULL},
      {"", 1, 1, 1, NULL},
      {"newton=info,substep=debug", 2, 3, 1, NULL},
      {" Newton = INFO , , substep = 3,", 2, 3, 1, NULL},
      {"all=debug", 3, 3, 3, NULL},
      {"newton=off,all=2,substep=warn", 0, 1, 2, NULL},
      {"all=none", 0, 0, 0, NULL},
      {"newton=loud,substep=info", 1, 2, 1, "'newton=loud'"},
      {"debug", 1, 1, 1, "'debug'"},
      {"newtons=debug,=,substep=debug,a=b=c", 1, 3, 1, "'newtons=debug', '=', 'a=b=c'"},
      {"newton=4,all=-1", 1, 1, 1, "'newton=4', 'all=-1'"},
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
      if (settings[i].text) setenv("NEML2_LOGS", settings[i].text, 1);
      levels_are(&settings[i]);
      _exit(check_failures ? 1 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status != 0) check_failed(__FILE__, __LINE__, settings[i].text ? settings[i].text : "no NEML2_LOGS");
  }
}

/* ---- levels ---- */

static void a_level_is_that_of_a_channel_or_of_all(void) {
  set("all", NEML2_LOG_INFO);
  set("newton", NEML2_LOG_DEBUG);
  CHECK(level_of("newton") == NEML2_LOG_DEBUG && level_of("linear") == NEML2_LOG_INFO);
  CHECK(level_of("all") == NEML2_LOG_DEBUG);
  set("all", NEML2_LOG_WARNING);
  CHECK(level_of("newton") == NEML2_LOG_WARNING && level_of("all") == NEML2_LOG_WARNING);
}

static void what_is_wrong_is_refused(void) {
  int32_t level = -7;
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_log_level_set("neton", NEML2_LOG_INFO));
  CHECK_ABOUT("neton");
  CHECK_SAYS("all, newton, linear, substep, model, tensor, driver, bounds");
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_log_level_get(&level, "neton"));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_log_level_set("newton", 4));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_log_level_set("newton", -1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_log_level_set(NULL, 1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_log_level_get(NULL, "newton"));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_log_level_get(&level, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_log_count(NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_log_next(NULL, NULL, NULL, 0, NULL));
  CHECK(level == -7 && level_of("all") == NEML2_LOG_WARNING && waiting() == 0);
}

/* ---- records ---- */

/* One step that goes well, and then one that does not. */
static void a_silent_channel_says_nothing(const neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  record r;
  viscoplastic_load(&b, 5);
  set("all", NEML2_LOG_WARNING);
  CHECK_OK(neml2_call_run(call, N));
  CHECK(waiting() == 0 && !next(&r));
  CHECK(strcmp(r.channel, "") == 0 && strcmp(r.message, "") == 0);

  b.strain[6] = 1e200;
  set("all", NEML2_LOG_SILENT);
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, N));
  CHECK(waiting() == 0);

  set("newton", NEML2_LOG_WARNING);
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, N));
  CHECK(waiting() == 1 && next(&r) && !next(&r));
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

static void points_that_fail_are_a_warning(const neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  record r = {0, "", ""};
  viscoplastic_load(&b, 5);
  b.strain[6] = 1e200;
  set("all", NEML2_LOG_WARNING);
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, N));
  CHECK(take(&r, "newton") == 1);
  CHECK(r.level == NEML2_LOG_WARNING && strcmp(r.message, check_message()) == 0);
  CHECK(strstr(r.message, "1 of 3 points did not converge (the first is point 1)"));

  set("newton", NEML2_LOG_INFO);
  neml2_call_run(call, N);
  CHECK(next(&r) && r.level == NEML2_LOG_INFO);
  CHECK(strstr(r.message, "viscoplastic_residual.pt2, 3 points from 0 on: 2 of 3 converged, in at most "));
  CHECK(strstr(r.message, "; point 1 has |r| = inf"));
  CHECK(take(&r, "newton") == 1 && r.level == NEML2_LOG_WARNING);
  set("all", NEML2_LOG_WARNING);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

/* A chunk of points says which they are in the evaluation. */
static void chunks_have_the_numbers_of_their_points(neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  record r;
  double chunk = 0;
  viscoplastic_load(&b, 5);
  b.strain[12] = 1e200;
  CHECK_OK(neml2_model_option_get_number(&chunk, model, "chunk"));
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 2));
  set("newton", NEML2_LOG_INFO);
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, N));
  CHECK(next(&r) && strstr(r.message, "2 points from 0 on: 2 of 2 converged"));
  CHECK(next(&r) && strstr(r.message, "point 2: 0 of 1 converged") && strstr(r.message, "point 2 has |r| = inf"));
  CHECK(take(&r, "newton") == 1);
  CHECK_OK(neml2_model_option_set_number(model, "chunk", chunk));
  set("all", NEML2_LOG_WARNING);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

static void the_history_is_that_of_the_report(const neml2_model *model) {
  double history[100], miters = 0;
  viscoplastic_block b = viscoplastic_create(1);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  REQUIRE_OK(neml2_model_option_get_number(&miters, model, "miters"));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_RESIDUAL_HISTORY, history, 100));
  viscoplastic_load(&b, 5);
  set("newton", NEML2_LOG_DEBUG);
  CHECK_OK(neml2_call_run(call, 1));
  CHECK(b.iterations[0] > 2);
  record r;
  for (int i = 0; i <= b.iterations[0]; ++i) {
    int iteration = -1, left = -1;
    double norm = -1;
    CHECK(next(&r) && r.level == NEML2_LOG_DEBUG && strcmp(r.channel, "newton") == 0);
    const char *begin = strstr(r.message, ": iteration ");
    CHECK(begin && sscanf(begin, ": iteration %d, |r| = %lf, %d left", &iteration, &norm, &left) == 3);
    CHECK(iteration == i && left == (i < b.iterations[0]));
    CHECK_NEAR(1, &norm, &history[i], 1e-6);
  }
  CHECK(next(&r) && r.level == NEML2_LOG_INFO && !next(&r));
  set("all", NEML2_LOG_WARNING);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

static void loading_is_told(void) {
  record r;
  set("model", NEML2_LOG_INFO);
  neml2_model *model = load(artifact("elasticity"));
  CHECK(next(&r) && strcmp(r.channel, "model") == 0 && strstr(r.message, "metadata.json, schema 14"));
  CHECK(next(&r) && strstr(r.message, "segments 1 (implicit 0), packages 2") && !next(&r));
  set("all", NEML2_LOG_WARNING);
  neml2_model_free(&model);
}

static void a_tensor_that_is_copied_is_told(void) {
  const int64_t shape[2] = {2, 6}, transposed[2] = {1, 2};
  double strain[12] = {0};
  record r;
  neml2_tensor *input = NULL, *output = NULL;
  neml2_model *model = load(artifact("elasticity"));
  REQUIRE_OK(neml2_tensor_wrap(&input, strain, NEML2_FLOAT64, 2, shape, transposed, NULL, NULL));
  set("tensor", NEML2_LOG_DEBUG);
  CHECK_OK(neml2_model_forward(&output, NULL, model, &input, NULL));
  CHECK(next(&r) && strcmp(r.channel, "tensor") == 0);
  CHECK(strcmp(r.message, "the input 'strain' was copied: it is not row-major") == 0);
  CHECK(!next(&r));
  set("all", NEML2_LOG_WARNING);
  neml2_tensor_free(&input);
  neml2_tensor_free(&output);
  neml2_model_free(&model);
}

static void a_message_is_cut_to_the_buffer(const neml2_model *model) {
  char small[8];
  int32_t level = -1;
  viscoplastic_block b = viscoplastic_create(1);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  viscoplastic_load(&b, 5);
  set("newton", NEML2_LOG_DEBUG);
  CHECK_OK(neml2_call_run(call, 1));
  CHECK_OK(neml2_log_next(&level, NULL, small, sizeof small, NULL));
  CHECK(level == NEML2_LOG_DEBUG && strcmp(small, "viscopl") == 0);
  const int64_t before = waiting();
  CHECK_OK(neml2_log_next(&level, NULL, NULL, 0, NULL)); /* is taken, too */
  CHECK(level == NEML2_LOG_DEBUG && waiting() == before - 1);
  record r;
  CHECK(take(&r, "newton") == before - 1);
  set("all", NEML2_LOG_WARNING);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

/* ---- the queue ---- */

static void a_full_queue_forgets_the_oldest_and_says_so(const neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(1);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  record r;
  viscoplastic_load(&b, 5);
  set("newton", NEML2_LOG_DEBUG);
  CHECK_OK(neml2_call_run(call, 1));
  const int64_t each = waiting();
  int64_t written = each, most = 0;
  for (; written < 20000; written += each) {
    CHECK_OK(neml2_call_run(call, 1));
    if (waiting() > most) most = waiting();
  }
  CHECK(most == waiting() && most < 20000); /* it is full, and stays so */
  CHECK(next(&r) && r.level == NEML2_LOG_WARNING && strcmp(r.channel, "newton") == 0);
  long long forgotten = 0;
  CHECK(sscanf(r.message, "The queue was full, and the %lld oldest records of 'newton'", &forgotten) == 1);
  const int left = take(&r, "newton");
  CHECK(forgotten + left == written);
  CHECK(r.level == NEML2_LOG_INFO); /* the end of the last solve */
  CHECK(waiting() == 0);
  set("all", NEML2_LOG_WARNING);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

static void *solve_repeatedly(void *argument) {
  viscoplastic_block b = viscoplastic_create(1);
  neml2_call *call = viscoplastic_call(argument, &b, 0);
  viscoplastic_load(&b, 5);
  for (int k = 0; k < RUNS; ++k) neml2_call_run(call, 1);
  neml2_call_free(&call);
  viscoplastic_free(&b);
  return NULL;
}

/* Threads write while another takes: each record is taken once, and whole. */
static void threads_share_the_queue(neml2_model *model) {
  pthread_t threads[THREADS];
  record r;
  set("newton", NEML2_LOG_DEBUG);
  solve_repeatedly(model);
  const int each = take(&r, "newton");
  for (int i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, solve_repeatedly, model) == 0);
  int taken = 0, wrong = 0;
  while (taken < THREADS * each / 2) {
    if (!next(&r)) continue;
    ++taken;
    if (strstr(r.message, "viscoplastic_residual.pt2, point 0: ") != r.message) ++wrong;
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (; next(&r); ++taken)
    if (strstr(r.message, "viscoplastic_residual.pt2, point 0: ") != r.message) ++wrong;
  CHECK(taken == THREADS * each && wrong == 0);
  set("all", NEML2_LOG_WARNING);
}

static void a_child_begins_with_an_empty_queue(neml2_model *model) {
  int status = -1;
  record r;
  set("newton", NEML2_LOG_INFO);
  solve_repeatedly(model);
  const pid_t child = fork();
  if (child == 0) {
    const int empty = waiting() == 0;
    solve_repeatedly(model);
    _exit(empty && waiting() == RUNS && level_of("newton") == NEML2_LOG_INFO ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(take(&r, "newton") == RUNS);
  set("all", NEML2_LOG_WARNING);
}

static void print_a_step(const neml2_model *model) {
  const double strain[6] = {5e-3, -1.5e-3, -1.25e-3, 5e-4, -1e-3, 2.5e-4};
  viscoplastic_block b = viscoplastic_create(1);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  record r;
  memcpy(b.strain, strain, sizeof strain);
  b.time = 5;
  set("newton", NEML2_LOG_DEBUG);
  CHECK_OK(neml2_call_run(call, 1));
  b.strain[0] = 1e200;
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, 1));
  while (next(&r)) printf("%s %d %s\n", r.channel, (int)r.level, r.message);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

int main(int argc, char **argv) {
  const int print = argc > 1 && strcmp(argv[1], "print") == 0;
  unsetenv("NEML2_LOGS");
  if (!print) the_environment_names_levels(); /* before this process has read it */
  neml2_model *model = load(artifact("viscoplastic"));
  if (print) {
    print_a_step(model);
  } else {
    a_level_is_that_of_a_channel_or_of_all();
    what_is_wrong_is_refused();
    a_silent_channel_says_nothing(model);
    points_that_fail_are_a_warning(model);
    chunks_have_the_numbers_of_their_points(model);
    the_history_is_that_of_the_report(model);
    loading_is_told();
    a_tensor_that_is_copied_is_told();
    a_message_is_cut_to_the_buffer(model);
    a_full_queue_forgets_the_oldest_and_says_so(model);
    threads_share_the_queue(model);
    a_child_begins_with_an_empty_queue(model);
  }
  neml2_model_free(&model);
  return CHECK_RESULT();
}
