/* A handle that is freed, of another kind, in use or no handle at all is an error that says so, never a crash. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "materials.h"

#define REFUSED(call)                           \
  do {                                          \
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, (call)); \
    if (says) CHECK_SAYS(says);                 \
  } while (0)

/* Every function that takes a handle, by the kind that it takes. The other arguments are good: nothing else is wrong. */
static neml2_model *good_model;
static neml2_tensor *good_tensor;

static void models_refuse(void *bad, const char *says) {
  neml2_model *model = bad;
  neml2_tensor *out[8] = {NULL}, *inputs[1] = {good_tensor};
  neml2_call *call = NULL;
  neml2_solve *solve = NULL;
  int64_t count = 0;
  double number = 0;
  const char *text = NULL;
  REFUSED(neml2_model_inspect(INFO(neml2_model_info), model));
  REFUSED(neml2_model_variable_count(&count, model, NEML2_INPUT));
  REFUSED(neml2_model_variable_find(&count, model, NEML2_INPUT, "strain"));
  REFUSED(neml2_model_variable_inspect(INFO(neml2_variable_info), model, NEML2_INPUT, 0));
  REFUSED(neml2_model_derivative_count(&count, model, NEML2_INPUT));
  REFUSED(neml2_model_derivative_inspect(INFO(neml2_derivative_info), model, NEML2_INPUT, 0));
  REFUSED(neml2_model_history_count(&count, model));
  REFUSED(neml2_model_history_inspect(INFO(neml2_history_info), model, 0));
  REFUSED(neml2_model_bound_count(&count, model));
  REFUSED(neml2_model_bound_inspect(INFO(neml2_bound_info), model, 0));
  REFUSED(neml2_model_describe(NULL, 0, &count, model));
  REFUSED(neml2_model_checksum(NULL, 0, &count, model));
  REFUSED(neml2_call_create(&call, model));
  REFUSED(neml2_model_forward(out, NULL, model, inputs, NULL));
  REFUSED(neml2_model_jvp(NULL, out, NULL, model, inputs, inputs, NULL));
  REFUSED(neml2_model_vjp(NULL, out, NULL, model, NEML2_INPUT, inputs, inputs, NULL));
  REFUSED(neml2_model_jacobian(NULL, out, NULL, model, NEML2_INPUT, inputs, NULL));
  REFUSED(neml2_model_parameter_get(out, model, "elasticity.E"));
  REFUSED(neml2_model_parameter_set(model, "elasticity.E", good_tensor));
  REFUSED(neml2_model_option_count(&count, model));
  REFUSED(neml2_model_option_inspect(INFO(neml2_option_info), model, 0));
  REFUSED(neml2_model_option_set_number(model, "atol", 1e-8));
  REFUSED(neml2_model_option_get_number(&number, model, "atol"));
  REFUSED(neml2_model_option_set_text(model, "kernels", "auto"));
  REFUSED(neml2_model_option_get_text(&text, model, "kernels"));
  REFUSED(neml2_solve_begin(&solve, model, inputs, NULL));
  REFUSED(neml2_model_points(&count, model, 0));
  CHECK(!out[0] && !call && !solve);
}

static void calls_refuse(void *bad, const char *says) {
  neml2_call *call = bad;
  neml2_solve *solve = NULL;
  double strain[6] = {0}, block[36];
  REFUSED(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  REFUSED(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", block, NEML2_FLOAT64, 36));
  REFUSED(neml2_call_bind_report(call, NEML2_REPORT_RESIDUAL_NORM, strain, 1));
  REFUSED(neml2_call_block_order_set(call, NEML2_INPUT_FIRST));
  REFUSED(neml2_call_run(call, 1));
  REFUSED(neml2_call_run(call, 0));
  REFUSED(neml2_solve_begin_call(&solve, call, 1));
  CHECK(!solve);
}

static void tensors_refuse(void *bad, const char *says) {
  neml2_tensor *tensor = bad, *out = NULL;
  struct DLManagedTensorVersioned *managed = NULL;
  REFUSED(neml2_tensor_share(&out, tensor));
  REFUSED(neml2_tensor_to_dlpack(&managed, tensor));
  REFUSED(neml2_tensor_inspect(INFO(neml2_tensor_info), tensor));
  REFUSED(neml2_model_parameter_set(good_model, "elasticity.E", tensor));
  if (tensor) { /* NULL is MISSING, or may be */
    REFUSED(neml2_model_forward(&out, NULL, good_model, &tensor, NULL));
    CHECK_ABOUT("strain");
    REFUSED(neml2_model_forward(&out, NULL, good_model, &good_tensor, &tensor));
    CHECK_ABOUT("elasticity.E");
    REFUSED(neml2_model_jvp(NULL, &out, NULL, good_model, &good_tensor, &tensor, NULL));
  }
  CHECK(!out && !managed);
}

static void reports_refuse(void *bad, const char *says) {
  neml2_tensor *out = NULL;
  REFUSED(neml2_report_get(&out, bad, NEML2_REPORT_STATUS));
  REFUSED(neml2_report_get_unknown(&out, bad, 0));
}

static void solves_refuse(void *bad, const char *says) {
  neml2_solve *solve = bad;
  neml2_system *system = NULL;
  REFUSED(neml2_solve_next(&system, solve));
  REFUSED(neml2_solve_end(NULL, NULL, &solve));
  CHECK(solve == bad && !system);
}

static void systems_refuse(void *bad, const char *says) {
  neml2_system *system = bad;
  double u[64] = {0};
  REFUSED(neml2_system_inspect(INFO(neml2_system_info), system));
  REFUSED(neml2_system_unknown_inspect(INFO(neml2_unknown_info), system, 0));
  REFUSED(neml2_system_guess(u, system));
  REFUSED(neml2_system_residual(u, system, u));
  REFUSED(neml2_system_step(u, NULL, system, u));
  REFUSED(neml2_system_jacobian(u, system, u));
  REFUSED(neml2_system_matvec(u, system, u, u));
  REFUSED(neml2_system_accept(system, u, NULL, NULL));
}

static void graphs_refuse(void *bad, const char *says) {
  neml2_graph *graph = bad;
  neml2_tensor *out = NULL;
  int64_t count = 0;
  REFUSED(neml2_graph_inspect(INFO(neml2_graph_info), graph));
  REFUSED(neml2_graph_variable_count(&count, graph, NEML2_INPUT));
  REFUSED(neml2_graph_variable_inspect(INFO(neml2_graph_variable_info), graph, NEML2_INPUT, 0));
  REFUSED(neml2_graph_run(&out, 1, graph, &good_tensor, 1));
  REFUSED(neml2_graph_run_unguarded(&out, 1, graph, &good_tensor, 1));
  REFUSED(neml2_graph_constant_count(&count, graph));
  REFUSED(neml2_graph_constant_get(&out, NULL, graph, 0));
  REFUSED(neml2_graph_constant_set(graph, 0, NULL, NULL, 0));
  CHECK(!out);
}

static void operator_calls_refuse(void *bad, const char *says) {
  neml2_operator_call *call = bad;
  neml2_tensor *const *tensors = NULL;
  const int64_t *integers = NULL;
  const double *reals = NULL;
  const char *text = NULL;
  int64_t count = 0;
  REFUSED(neml2_operator_call_count(&count, call, NEML2_INPUT));
  REFUSED(neml2_operator_call_find(&count, call, "x"));
  REFUSED(neml2_operator_call_inspect(INFO(neml2_argument_info), call, 0));
  REFUSED(neml2_operator_call_get_tensors(&tensors, call, 0));
  REFUSED(neml2_operator_call_get_integers(&integers, call, 0));
  REFUSED(neml2_operator_call_get_reals(&reals, call, 0));
  REFUSED(neml2_operator_call_get_text(&text, call, 0));
  REFUSED(neml2_operator_call_set_output(call, 0, &good_tensor));
  CHECK(good_tensor);
}

static void schedulers_refuse(void *bad, const char *says) {
  neml2_scheduler *scheduler = bad;
  neml2_model *model = NULL;
  int64_t count = 0;
  REFUSED(neml2_scheduler_add(scheduler, DEVICE(.batch_size = 1)));
  REFUSED(neml2_scheduler_count(&count, scheduler));
  REFUSED(neml2_scheduler_inspect(INFO(neml2_device), scheduler, 0));
  REFUSED(neml2_scheduler_keep_rank(scheduler, 0, 1));
  if (scheduler) REFUSED(neml2_model_open(&model, SOURCE(.path = artifact("elasticity"), .scheduler = scheduler)));
  CHECK(!model);
}

/* Kinds: their names, those functions, and the one that frees. */
#define FREE(kind) \
  static void free_##kind(void **handle) { neml2_##kind##_free((neml2_##kind **)handle); }
FREE(model)
FREE(call)
FREE(tensor)
FREE(report)
FREE(solve)
FREE(graph)
FREE(scheduler)

enum { MODEL, CALL, TENSOR, REPORT, SOLVE, SYSTEM, GRAPH, SCHEDULER, OPERATOR_CALL, KINDS };
static const struct {
  const char *name;
  void (*refuse)(void *, const char *);
  void (*free)(void **);
} kinds[KINDS] = {
    {"neml2_model", models_refuse, free_model},          {"neml2_call", calls_refuse, free_call},
    {"neml2_tensor", tensors_refuse, free_tensor},       {"neml2_report", reports_refuse, free_report},
    {"neml2_solve", solves_refuse, free_solve},          {"neml2_system", systems_refuse, NULL},
    {"neml2_graph", graphs_refuse, free_graph},          {"neml2_scheduler", schedulers_refuse, free_scheduler},
    {"neml2_operator_call", operator_calls_refuse, NULL}};

static neml2_model *viscoplastic;
static viscoplastic_block block;

static void make(void *handles[KINDS]) {
  static char path[4200];
  double strain[1][6] = {{1e-3, 0, 0, 0, 0, 0}};
  const int64_t shape[2] = {1, 6};
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS] = {NULL}, *output = NULL, *strains = tensor_over(strain[0], 2, shape);
  snprintf(path, sizeof path, "%s/cpu/float64/elasticity.pt2", artifact("elasticity"));
  REQUIRE_OK(neml2_model_open((neml2_model **)&handles[MODEL], SOURCE(.path = artifact("elasticity"))));
  REQUIRE_OK(neml2_call_create((neml2_call **)&handles[CALL], handles[MODEL]));
  REQUIRE_OK(neml2_tensor_create((neml2_tensor **)&handles[TENSOR], NEML2_FLOAT64, 2, shape));
  REQUIRE_OK(neml2_model_forward(&output, (neml2_report **)&handles[REPORT], handles[MODEL], &strains, NULL));
  viscoplastic_tensors(viscoplastic, &block, inputs);
  REQUIRE_OK(neml2_solve_begin((neml2_solve **)&handles[SOLVE], viscoplastic, inputs, NULL));
  REQUIRE_OK(neml2_solve_next((neml2_system **)&handles[SYSTEM], handles[SOLVE]));
  REQUIRE_OK(neml2_graph_open((neml2_graph **)&handles[GRAPH], SOURCE(.path = path)));
  REQUIRE_OK(neml2_scheduler_create((neml2_scheduler **)&handles[SCHEDULER]));
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&inputs[i]);
  neml2_tensor_free(&output);
  neml2_tensor_free(&strains);
}

static void another_kind_is_told(void) {
  char says[128];
  void *handles[KINDS] = {NULL};
  make(handles);
  for (int wanted = 0; wanted < KINDS; ++wanted)
    for (int given = 0; given < OPERATOR_CALL; ++given) {
      if (given == wanted) continue;
      snprintf(says, sizeof says, "is a %s; expected a %s.", kinds[given].name, kinds[wanted].name);
      kinds[wanted].refuse(handles[given], says);
    }
  CHECK_OK(neml2_system_inspect(INFO(neml2_system_info), handles[SYSTEM])); /* all are as they were */
  CHECK_ELASTICITY(handles[MODEL]);
  for (int kind = 0; kind < KINDS; ++kind)
    if (kinds[kind].free) kinds[kind].free(&handles[kind]);
}

/* The log has this warning, and no other. */
static void check_warned(const char *says) {
  char message[NEML2_LOG_LENGTH];
  int32_t level = 0;
  CHECK_OK(neml2_log_next(&level, NULL, message, sizeof message, NULL));
  CHECK(level == NEML2_LOG_WARNING && strstr(message, says));
  if (level == NEML2_LOG_SILENT) return;
  CHECK_OK(neml2_log_next(&level, NULL, message, sizeof message, NULL));
  CHECK(level == NEML2_LOG_SILENT);
}

static void a_copy_of_what_is_freed_is_told(void) {
  char says[128];
  void *handles[KINDS] = {NULL}, *copies[KINDS], *others[KINDS] = {NULL};
  make(handles);
  memcpy(copies, handles, sizeof copies);
  for (int kind = 0; kind < KINDS; ++kind)
    if (kinds[kind].free) kinds[kind].free(&handles[kind]);
  make(others); /* in the same slots, most likely */
  for (int kind = 0; kind < OPERATOR_CALL; ++kind) {
    snprintf(says, sizeof says, "is a %s that was freed.", kinds[kind].name);
    kinds[kind].refuse(copies[kind], says);
    kinds[(kind + 1) % OPERATOR_CALL].refuse(copies[kind], "that was freed; expected a");
    if (!kinds[kind].free) continue;
    kinds[kind].free(&copies[kind]);
    CHECK(!copies[kind]);
    check_warned("that was freed");
  }
  CHECK_ELASTICITY(others[MODEL]);
  for (int kind = 0; kind < KINDS; ++kind)
    if (kinds[kind].free) kinds[kind].free(&others[kind]);
}

static void what_is_no_handle_is_told(void) {
  void *handles[KINDS] = {NULL};
  make(handles);
  for (int kind = 0; kind < KINDS; ++kind) {
    int64_t local[4] = {1, 2, 3, 4};
    void *heap = malloc(64), *of_another_generation = (void *)((uintptr_t)handles[kind] + ((uintptr_t)1 << 28));
    void *const foreign[] = {local,
                             heap,
                             (void *)&kinds,
                             (void *)(uintptr_t)1,
                             (void *)UINTPTR_MAX,
                             (char *)heap + 3,
                             (char *)local + 1,
                             (void *)(uintptr_t)0xcdcdcdcdcdcdcdcd,
                             of_another_generation,
                             (void *)((uintptr_t)handles[MODEL] | 0xffffff)};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; ++i)
      kinds[kind].refuse(foreign[i], "is no handle of this library (0x");
    kinds[kind].refuse(NULL, "is NULL");
    for (size_t i = 0; kinds[kind].free && i < sizeof foreign / sizeof *foreign; ++i) {
      void *copy = foreign[i];
      kinds[kind].free(&copy);
      CHECK(!copy);
      check_warned("is no handle of this library");
    }
    free(heap);
  }
  for (int kind = 0; kind < KINDS; ++kind) {
    void *copy = handles[kind];
    if (!kinds[kind].free) continue;
    kinds[kind == MODEL ? TENSOR : MODEL].free(&copy); /* of another kind: it stays */
    check_warned("expected a");
    kinds[kind].free(&handles[kind]);
    int32_t level = -1;
    CHECK_OK(neml2_log_next(&level, NULL, NULL, 0, NULL));
    CHECK(level == NEML2_LOG_SILENT);
  }
}

/* A system ends with the next one: neml2_solve_next() gives a handle for each. */
static void a_system_ends_with_the_next(void) {
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS] = {NULL}, *outputs[VISCOPLASTIC_OUTPUTS] = {NULL};
  neml2_solve *solve = NULL;
  neml2_system *system = NULL, *next = NULL;
  double u[64];
  viscoplastic_tensors(viscoplastic, &block, inputs);
  REQUIRE_OK(neml2_solve_begin(&solve, viscoplastic, inputs, NULL));
  REQUIRE_OK(neml2_solve_next(&system, solve));
  CHECK(system_info(system).n <= 64);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_next(&next, solve));
  CHECK_OK(neml2_system_guess(u, system)); /* it is still there */
  CHECK_OK(neml2_system_accept(system, u, NULL, NULL));
  CHECK_OK(neml2_solve_next(&next, solve));
  CHECK(!next);
  systems_refuse(system, "is a neml2_system that was freed");
  neml2_solve *copy = solve;
  CHECK(neml2_solve_end(outputs, NULL, &solve) >= NEML2_OK);
  solves_refuse(copy, "is a neml2_solve that was freed");
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&inputs[i]);
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&outputs[i]);
}

/* The library asks this in the middle of an evaluation, on its thread. */
typedef struct {
  void (*meanwhile)(void);
  int times;
} middle;

static int32_t asked(void *context) {
  middle *own = context;
  if (own->times++ == 0) own->meanwhile();
  return 0;
}

enum { MANY = 5000 }; /* more points than are walked at a time */
static neml2_call *running;
static neml2_model *evaluated;
static neml2_tensor *tensors[VISCOPLASTIC_INPUTS];
static int32_t status_of_run;

static void *run_the_call(void *unused) {
  status_of_run = neml2_call_run(running, MANY);
  return unused;
}

static void *evaluate_the_model(void *unused) {
  neml2_tensor *outputs[VISCOPLASTIC_OUTPUTS] = {NULL};
  status_of_run = neml2_model_forward(outputs, NULL, evaluated, tensors, NULL);
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&outputs[i]);
  return unused;
}

static void *refuse_the_call(void *unused) {
  calls_refuse(running, "is in use");
  return unused;
}

static void in_a_thread(void *(*function)(void *)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, NULL) != 0) exit(1);
  pthread_join(thread, NULL);
}

/* In a thread of its own, which is asked at once: each is asked ten times a second. */
static void in_the_middle_of(void *(*evaluation)(void *), void (*meanwhile)(void)) {
  middle own = {meanwhile, 0};
  status_of_run = -1000;
  CHECK_OK(neml2_interrupt_set(asked, &own));
  in_a_thread(evaluation);
  CHECK_OK(neml2_interrupt_set(NULL, NULL));
  CHECK(own.times > 0);
  CHECK_STATUS(NEML2_OK, status_of_run);
}

static void refuse_inside(void) { calls_refuse(running, "is in use"); }
static void refuse_beside(void) { in_a_thread(refuse_the_call); }

static void free_the_call(void) {
  neml2_call *copy = running;
  neml2_call_free(&copy);
  CHECK(!copy);
  check_warned("is in use, and goes when the last function that runs on it returns");
  calls_refuse(running, "that was freed");
  copy = running;
  neml2_call_free(&copy);
  check_warned("that was freed");
}

static void free_the_model_and_its_inputs(void) {
  neml2_model *copy = evaluated;
  neml2_model_free(&copy);
  check_warned("is in use");
  models_refuse(evaluated, "that was freed");
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&tensors[i]);
}

static void evaluate_it_again(void) {
  CHECK_OK(neml2_model_inspect(INFO(neml2_model_info), evaluated)); /* a model is for any number of threads */
  CHECK_OK(neml2_model_option_set_number(evaluated, "atol", 1e-8));
}

static void what_is_in_use_is_told(void) {
  viscoplastic_block many = viscoplastic_create(MANY), expected = viscoplastic_create(MANY);
  neml2_call *other = viscoplastic_call(viscoplastic, &expected, 0);
  viscoplastic_load(&many, 5);
  viscoplastic_load(&expected, 5);
  CHECK_OK(neml2_call_run(other, MANY));
  void (*const meanwhiles[])(void) = {refuse_inside, refuse_beside, free_the_call};
  running = viscoplastic_call(viscoplastic, &many, 0);
  for (int i = 0; i < 3; ++i) {
    memset(many.state, 0, sizeof(double) * STATE_SIZE * MANY);
    in_the_middle_of(run_the_call, meanwhiles[i]);
    CHECK_SAME(STATE_SIZE * MANY, many.state, expected.state);
  }
  calls_refuse(running, "is a neml2_call that was freed");

  evaluated = load(artifact("viscoplastic"));
  viscoplastic_tensors(evaluated, &many, tensors);
  in_the_middle_of(evaluate_the_model, evaluate_it_again);
  in_the_middle_of(evaluate_the_model, free_the_model_and_its_inputs);
  models_refuse(evaluated, "is a neml2_model that was freed");
  neml2_call_free(&other);
  viscoplastic_free(&many);
  viscoplastic_free(&expected);
}

/* Threads that free what others made, and make what others free, and a bound of what lives at once. */
enum { ROUNDS = 5000, HELD = 64 };
static neml2_tensor *held[HELD];
static int lost;

static void *exchange_tensors(void *argument) {
  unsigned state = (unsigned)(uintptr_t)argument;
  for (int i = 0; i < ROUNDS; ++i) {
    const int64_t shape[1] = {(state = state * 1664525 + 1013904223) >> 28};
    neml2_tensor *mine = NULL;
    if (neml2_tensor_create(&mine, NEML2_FLOAT64, 1, shape) != NEML2_OK) return argument;
    mine = __atomic_exchange_n(&held[(state >> 12) % HELD], mine, __ATOMIC_ACQ_REL);
    neml2_tensor *copy = mine;
    neml2_tensor_free(&mine);
    neml2_tensor_info info = {.size = sizeof info};
    if (copy && neml2_tensor_inspect(&info, copy) != NEML2_ERROR_ARGUMENT)
      __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
  }
  return argument;
}

static void threads_exchange_handles(void) {
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; ++i)
    if (pthread_create(&threads[i], NULL, exchange_tensors, (void *)(i + 1)) != 0) exit(1);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  CHECK(lost == 0);
  for (int i = 0; i < HELD; ++i) {
    if (!held[i]) continue;
    CHECK_OK(neml2_tensor_inspect(INFO(neml2_tensor_info), held[i]));
    neml2_tensor_free(&held[i]);
  }
}

/* However often a slot is used again, a handle of before is not taken for one of now. */
static void no_number_comes_twice(void) {
  const int64_t shape[1] = {1};
  neml2_tensor *first = NULL, *other = NULL;
  REQUIRE_OK(neml2_tensor_create(&first, NEML2_FLOAT64, 1, shape));
  neml2_tensor *const copy = first;
  neml2_tensor_free(&first);
  for (int i = 0; i < 20000; ++i) {
    REQUIRE_OK(neml2_tensor_create(&other, NEML2_FLOAT64, 1, shape));
    CHECK(other != copy);
    neml2_tensor_free(&other);
  }
  tensors_refuse(copy, "that was freed");
}

int main(void) {
  const int64_t shape[2] = {1, 6};
  CHECK_OK(neml2_log_level_set("newton", NEML2_LOG_SILENT)); /* leaves the warnings about handles */
  good_model = load(artifact("elasticity"));
  viscoplastic = load(artifact("viscoplastic"));
  block = viscoplastic_create(1);
  viscoplastic_load(&block, 1);
  REQUIRE_OK(neml2_tensor_create(&good_tensor, NEML2_FLOAT64, 2, shape));
  another_kind_is_told();
  a_copy_of_what_is_freed_is_told();
  what_is_no_handle_is_told();
  a_system_ends_with_the_next();
  what_is_in_use_is_told();
  threads_exchange_handles();
  no_number_comes_twice();
  CHECK_ELASTICITY(good_model);
  neml2_tensor_free(&good_tensor);
  neml2_model_free(&good_model);
  neml2_model_free(&viscoplastic);
  viscoplastic_free(&block);
  return CHECK_RESULT();
}
