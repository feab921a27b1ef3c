/* Calls at random: every function of the header, with handles that are good, freed, of another kind, NULL or none, and
 * with numbers and names that are right or absurd. Nothing may crash, and a model that was left alone still gives the
 * same numbers.
 *
 *     c_test_monkey [CALLS [SEED [THREADS]]]     NEML2_TEST_TRACE=1 prints the number of each call, to find the last
 *
 * The handles are shared by all threads. Memory that is given is large enough for what it is said to be: the library
 * cannot know better. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "materials.h"

enum { MODEL, CALL, TENSOR, REPORT, SOLVE, SYSTEM, GRAPH, SCHEDULER, OPERATOR_CALL, KINDS };
enum { HELD = 12, BUFFER = 1 << 17, POINTS = 16 };

/* Handles of each kind: those that are there, and copies of what was freed. */
static void *alive[KINDS][HELD], *stale[KINDS][HELD];
static struct DLManagedTensorVersioned *exported[HELD];
static char package[4200];
static int tracing;

typedef struct {
  uint64_t state;
  int64_t calls;
  int inside; /* calls of a function that the library called */
  double *memory;
} monkey;

static uint64_t draw(monkey *m) { /* xorshift64* */
  m->state ^= m->state >> 12, m->state ^= m->state << 25, m->state ^= m->state >> 27;
  return m->state * 2685821657736338717u;
}
static int64_t below(monkey *m, int64_t n) { return (int64_t)((draw(m) >> 11) % (uint64_t)n); }
static int once_in(monkey *m, int64_t n) { return below(m, n) == 0; }

#define PICK(m, ...) \
  ((const int64_t[]){__VA_ARGS__})[below(m, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))]

static void *handle(monkey *m, int kind) {
  const int64_t place = below(m, HELD);
  if (once_in(m, 16)) kind = (int)below(m, KINDS);
  if (once_in(m, 16)) return __atomic_load_n(&stale[kind][place], __ATOMIC_RELAXED);
  if (once_in(m, 64)) return (void *)(uintptr_t)draw(m);
  if (once_in(m, 64)) return (char *)__atomic_load_n(&alive[kind][place], __ATOMIC_RELAXED) + PICK(m, 1, 8, 1 << 28);
  if (once_in(m, 64)) return m->memory;
  return __atomic_load_n(&alive[kind][place], __ATOMIC_RELAXED);
}

static void release(monkey *m, int kind, void *given);

/* A place for a new handle; the one before is freed. */
static void keep(monkey *m, int kind, void *made) {
  if (made) release(m, kind, __atomic_exchange_n(&alive[kind][below(m, HELD)], made, __ATOMIC_ACQ_REL));
}

static void release(monkey *m, int kind, void *given) {
  void *copy = given;
  switch (kind) {
    case MODEL: neml2_model_free((neml2_model **)&copy); break;
    case CALL: neml2_call_free((neml2_call **)&copy); break;
    case TENSOR: neml2_tensor_free((neml2_tensor **)&copy); break;
    case REPORT: neml2_report_free((neml2_report **)&copy); break;
    case SOLVE: neml2_solve_free((neml2_solve **)&copy); break;
    case GRAPH: neml2_graph_free((neml2_graph **)&copy); break;
    case SCHEDULER: neml2_scheduler_free((neml2_scheduler **)&copy); break;
    default: copy = NULL; break; /* ends with something else */
  }
  if (copy) abort();
  __atomic_store_n(&stale[kind][below(m, HELD)], given, __ATOMIC_RELAXED);
}

static int32_t number(monkey *m) {
  return (int32_t)(once_in(m, 8) ? PICK(m, -1, 99, INT32_MIN, INT32_MAX) : below(m, 9));
}
static int64_t index_of(monkey *m) { return once_in(m, 8) ? PICK(m, -1, 99, INT64_MIN, INT64_MAX) : below(m, 8); }
static int64_t points(monkey *m) {
  return once_in(m, 8) ? PICK(m, -1, INT64_MIN, INT64_MAX, INT64_MAX / 8) : below(m, POINTS);
}
static int64_t stride(monkey *m) {
  return once_in(m, 8) ? PICK(m, -1, INT64_MIN, INT64_MAX) : PICK(m, 0, 1, 6, 6, 19, 36, 40);
}
static void *memory(monkey *m) { return once_in(m, 16) ? NULL : m->memory + below(m, 8192); }
static int32_t dtype(monkey *m) { return once_in(m, 4) ? number(m) : NEML2_FLOAT64; }

static const char *name(monkey *m) {
  static const char *const names[] = {
      "strain",
      "strain",
      "strain",
      "stress",
      "stress",
      "strain~1",
      "stress~1",
      "t",
      "t~1",
      "X1",
      "X1~1",
      "X2~1",
      "equivalent_plastic_strain",
      "equivalent_plastic_strain~1",
      "elasticity.E",
      "elasticity.E",
      "",
      "\xff\xfe",
      "no",
      NULL,
      "a name that is longer than any variable has, and than any buffer of a fixed length would be good for"};
  return names[below(m, (int64_t)(sizeof names / sizeof *names))];
}

static const char *option(monkey *m) {
  static const char *const names[] = {
      "atol",  "rtol",    "ls_type", "ls_cutback",      "ls_c",   "convergence", "collect_history",
      "chunk", "threads", "kernels", "substep_del_tol", "rescue", "none",        NULL};
  return names[below(m, (int64_t)(sizeof names / sizeof *names))];
}

static neml2_tensor **tensors(monkey *m, neml2_tensor *room[20]) {
  for (int i = 0; i < 20; ++i) room[i] = once_in(m, 8) ? NULL : handle(m, TENSOR);
  return once_in(m, 16) ? NULL : room;
}

static void keep_all(monkey *m, neml2_tensor *made[20]) {
  for (int i = 0; i < 20; ++i) keep(m, TENSOR, made[i]);
}

static void call_at_random(monkey *m);

static int32_t asked(void *context) { return once_in(context, 4) ? (int32_t)below(context, 2000) : 0; }

static int32_t solver(void *context, neml2_system *system) {
  monkey *m = context;
  __atomic_store_n(&alive[SYSTEM][below(m, HELD)], system, __ATOMIC_RELAXED);
  for (int64_t i = below(m, 4); m->inside < 2 && i > 0; --i) call_at_random(m);
  neml2_system_guess(m->memory, system);
  neml2_system_accept(system, m->memory, NULL, NULL);
  return once_in(m, 4) ? number(m) : NEML2_OK;
}

static int32_t operator_function(void *context, neml2_operator_call *call) {
  (void)context, (void)call;
  return NEML2_ERROR_RUNTIME;
}

static neml2_source source(monkey *m) {
  neml2_source given = {.size = once_in(m, 16) ? index_of(m) : (int64_t)sizeof given};
  given.path = once_in(m, 8) ? name(m) : artifact(once_in(m, 2) ? "elasticity" : "viscoplastic");
  if (once_in(m, 16)) given.name = name(m);
  if (once_in(m, 16)) given.content = m->memory, given.content_size = PICK(m, -1, 0, 1, 1000);
  if (once_in(m, 4)) given.scheduler = handle(m, SCHEDULER);
  if (once_in(m, 8)) given.dtype = number(m), given.device = number(m), given.device_index = number(m);
  if (once_in(m, 8)) given.runtime = (int32_t)PICK(m, -1, NEML2_RUNTIME_BUILTIN, 99);
  return given;
}

/* What costs little. */
static void a_light_call(monkey *m) {
  int64_t count, shape[20], strides[20];
  int32_t level, status;
  double value;
  char text[64];
  const char *borrowed;
  void *made = NULL;
  neml2_tensor *tensor = NULL, *const * list;
  neml2_tensor_info info = {.size = once_in(m, 16) ? index_of(m) : (int64_t)sizeof info};
  for (int i = 0; i < 20; ++i)
    shape[i] = once_in(m, 50) ? PICK(m, -1, INT64_MAX) : below(m, 7), strides[i] = PICK(m, 0, 1, 6, 7, -1);
  const int64_t ndim = once_in(m, 16) ? PICK(m, -1, 17, INT64_MAX) : below(m, 4), capacity = PICK(m, -1, 0, 1, 64);
  char *const buffer = once_in(m, 8) ? NULL : text;
  switch (below(m, 67)) {
    case 0: neml2_model_inspect(INFO(neml2_model_info), handle(m, MODEL)); break;
    case 1: neml2_model_variable_count(&count, handle(m, MODEL), number(m)); break;
    case 2: neml2_model_variable_find(&count, handle(m, MODEL), number(m), name(m)); break;
    case 3: neml2_model_variable_inspect(INFO(neml2_variable_info), handle(m, MODEL), number(m), index_of(m)); break;
    case 4: neml2_model_derivative_count(&count, handle(m, MODEL), number(m)); break;
    case 5:
      neml2_model_derivative_inspect(INFO(neml2_derivative_info), handle(m, MODEL), number(m), index_of(m));
      break;
    case 6: neml2_model_history_count(&count, handle(m, MODEL)); break;
    case 7:
      neml2_model_history_inspect(INFO(neml2_history_info), handle(m, MODEL), index_of(m));
      neml2_model_bound_count(&count, handle(m, MODEL));
      neml2_model_bound_inspect(INFO(neml2_bound_info), handle(m, MODEL), index_of(m));
      break;
    case 8:
      neml2_model_describe(buffer, capacity, &count, handle(m, MODEL));
      neml2_model_checksum(buffer, capacity, &count, handle(m, MODEL));
      break;
    case 9: neml2_call_create((neml2_call **)&made, handle(m, MODEL)), keep(m, CALL, made); break;
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15: neml2_call_bind(handle(m, CALL), number(m), name(m), memory(m), dtype(m), stride(m)); break;
    case 16:
      neml2_call_bind_derivative(handle(m, CALL), (int32_t)PICK(m, 0, 0, 2, 7), name(m), name(m), memory(m), dtype(m),
                                 stride(m));
      break;
    case 17: neml2_call_block_order_set(handle(m, CALL), number(m)); break;
    case 18:
      neml2_call_bind_report(handle(m, CALL), number(m), memory(m), stride(m));
      neml2_call_report_step_stride_set(handle(m, CALL), number(m), PICK(m, 0, 0, 1, 16, -1));
      neml2_call_step_stride_set(handle(m, CALL), number(m), name(m), PICK(m, 0, 0, 1, 96, -1));
      neml2_call_derivative_step_stride_set(handle(m, CALL), number(m), name(m), name(m), PICK(m, 0, 0, 1, 96, -1));
      neml2_call_state_save(handle(m, CALL), once_in(m, 2) ? NULL : "no/such/folder/state", points(m), number(m), 0.5);
      neml2_call_state_load(NULL, &(double){0}, handle(m, CALL), once_in(m, 2) ? NULL : "no state", points(m));
      neml2_call_bind_input_derivative(handle(m, CALL), name(m), number(m), name(m), memory(m), dtype(m), stride(m));
      neml2_call_memory_set(handle(m, CALL),
                            once_in(m, 2) ? NULL : &(neml2_call_memory){.size = sizeof(neml2_call_memory)});
      neml2_call_wait(handle(m, CALL));
      break;
    case 19:
    case 20:
      neml2_tensor_create((neml2_tensor **)&made, dtype(m), ndim, once_in(m, 16) ? NULL : shape), keep(m, TENSOR, made);
      break;
    case 21:
    case 22:
      neml2_tensor_wrap((neml2_tensor **)&made, memory(m), dtype(m), ndim, shape, once_in(m, 2) ? NULL : strides, NULL,
                        NULL);
      keep(m, TENSOR, made);
      break;
    case 23: neml2_tensor_share((neml2_tensor **)&made, handle(m, TENSOR)), keep(m, TENSOR, made); break;
    case 24: neml2_tensor_inspect(&info, handle(m, TENSOR)); break;
    case 25: {
      struct DLManagedTensorVersioned *managed = NULL, *before;
      neml2_tensor_to_dlpack(&managed, handle(m, TENSOR));
      before = __atomic_exchange_n(&exported[below(m, HELD)], managed, __ATOMIC_ACQ_REL);
      if (before && neml2_tensor_from_dlpack(&tensor, before) != NEML2_OK) abort();
      keep(m, TENSOR, tensor);
      break;
    }
    case 26: neml2_report_get((neml2_tensor **)&made, handle(m, REPORT), number(m)), keep(m, TENSOR, made); break;
    case 27:
      neml2_report_get_unknown((neml2_tensor **)&made, handle(m, REPORT), index_of(m)), keep(m, TENSOR, made);
      break;
    case 28: neml2_model_parameter_get((neml2_tensor **)&made, handle(m, MODEL), name(m)), keep(m, TENSOR, made); break;
    case 29: neml2_model_parameter_set(handle(m, MODEL), name(m), handle(m, TENSOR)); break;
    case 30: neml2_model_option_count(&count, handle(m, MODEL)); break;
    case 31: neml2_model_option_inspect(INFO(neml2_option_info), handle(m, MODEL), index_of(m)); break;
    case 32:
      neml2_model_option_set_number(handle(m, MODEL), option(m), once_in(m, 4) ? NAN : (double)PICK(m, -1, 0, 1, 2));
      break;
    case 33: neml2_model_option_get_number(&value, handle(m, MODEL), option(m)); break;
    case 34:
      neml2_model_option_set_text(handle(m, MODEL), option(m),
                                  once_in(m, 2)   ? "batch"
                                  : once_in(m, 2) ? "point"
                                                  : "auto");
      break;
    case 35: neml2_model_option_get_text(&borrowed, handle(m, MODEL), option(m)); break;
    case 36: neml2_model_points(&count, handle(m, MODEL), index_of(m)); break;
    case 37: neml2_system_inspect(INFO(neml2_system_info), handle(m, SYSTEM)); break;
    case 38: neml2_system_unknown_inspect(INFO(neml2_unknown_info), handle(m, SYSTEM), index_of(m)); break;
    case 39: neml2_graph_inspect(INFO(neml2_graph_info), handle(m, GRAPH)); break;
    case 40: neml2_graph_variable_count(&count, handle(m, GRAPH), number(m)); break;
    case 41:
      neml2_graph_variable_inspect(INFO(neml2_graph_variable_info), handle(m, GRAPH), number(m), index_of(m));
      break;
    case 42: neml2_graph_constant_count(&count, handle(m, GRAPH)); break;
    case 43:
      neml2_graph_constant_get((neml2_tensor **)&made, &borrowed, handle(m, GRAPH), index_of(m)), keep(m, TENSOR, made);
      break;
    case 44:
      tensor = handle(m, TENSOR), borrowed = name(m),
      neml2_graph_constant_set(handle(m, GRAPH), PICK(m, -1, 0, 1), &borrowed, &tensor, number(m));
      break;
    case 45: neml2_operator_call_count(&count, handle(m, OPERATOR_CALL), number(m)); break;
    case 46: neml2_operator_call_find(&count, handle(m, OPERATOR_CALL), name(m)); break;
    case 47: neml2_operator_call_inspect(INFO(neml2_argument_info), handle(m, OPERATOR_CALL), index_of(m)); break;
    case 48: neml2_operator_call_get_tensors(&list, handle(m, OPERATOR_CALL), index_of(m)); break;
    case 49: {
      const int64_t *integers;
      neml2_operator_call_get_integers(&integers, handle(m, OPERATOR_CALL), index_of(m));
      break;
    }
    case 50: {
      const double *reals;
      neml2_operator_call_get_reals(&reals, handle(m, OPERATOR_CALL), index_of(m));
      break;
    }
    case 51: neml2_operator_call_get_text(&borrowed, handle(m, OPERATOR_CALL), index_of(m)); break;
    case 52:
      tensor = handle(m, TENSOR), neml2_operator_call_set_output(handle(m, OPERATOR_CALL), index_of(m), &tensor);
      break;
    case 53: neml2_scheduler_create((neml2_scheduler **)&made), keep(m, SCHEDULER, made); break;
    case 54:
      neml2_scheduler_add(handle(m, SCHEDULER), DEVICE(.batch_size = once_in(m, 4) ? index_of(m) : 1 + below(m, 8),
                                                       .device = (int32_t)below(m, 2), .priority = 1));
      break;
    case 55: neml2_scheduler_count(&count, handle(m, SCHEDULER)); break;
    case 56: neml2_scheduler_inspect(INFO(neml2_device), handle(m, SCHEDULER), index_of(m)); break;
    case 57: neml2_scheduler_keep_rank(handle(m, SCHEDULER), index_of(m), index_of(m)); break;
    case 58: neml2_error_record(number(m), number(m), name(m), name(m)); break;
    case 59: neml2_error_get(&status, NULL, buffer, capacity, &count, index_of(m)), neml2_error_count(&count); break;
    case 60: neml2_error_message(buffer, capacity, &count), neml2_error_subject(buffer, capacity, NULL); break;
    case 61:
      neml2_log_level_set(once_in(m, 2) ? "newton" : name(m), number(m)), neml2_log_level_get(&level, "all");
      break;
    case 62: neml2_log_count(&count), neml2_log_next(&level, &borrowed, buffer, capacity, &count); break;
    case 63: neml2_interrupt_set(once_in(m, 2) ? asked : NULL, m); break;
    case 64:
      neml2_operator_register(once_in(m, 2) ? "monkey::scale(Tensor x) -> Tensor" : name(m), operator_function, m);
      break;
    case 65: neml2_operator_unregister(once_in(m, 2) ? "monkey::scale" : name(m)); break;
    case 66:
      if (neml2_error_status() != NEML2_OK && neml2_error_cause() < 0) abort();
      break;
  }
}

/* What computes. */
static void a_call_that_computes(monkey *m) {
  neml2_tensor *out[20] = {NULL}, *more[20] = {NULL}, *a[20], *b[20], *c[20];
  void *made = NULL, *given;
  neml2_tensor **const outputs = once_in(m, 8) ? NULL : out;
  neml2_report **const report = once_in(m, 2) ? NULL : (neml2_report **)&made;
  switch (below(m, 18)) {
    case 0:
    case 1:
    case 2:
    case 3:
      if (once_in(m, 4))
        neml2_call_run_steps(&(int64_t){0}, handle(m, CALL), points(m), PICK(m, -1, 0, 1, 2, 3));
      else
        neml2_call_run(handle(m, CALL), points(m));
      break;
    case 4:
      neml2_model_forward(outputs, report, handle(m, MODEL), tensors(m, a), once_in(m, 2) ? NULL : tensors(m, b));
      break;
    case 5:
      neml2_model_jvp(outputs, more, report, handle(m, MODEL), tensors(m, a), tensors(m, b),
                      once_in(m, 2) ? NULL : tensors(m, c));
      break;
    case 6:
      neml2_model_vjp(outputs, more, report, handle(m, MODEL), number(m), tensors(m, a), tensors(m, b),
                      once_in(m, 2) ? NULL : tensors(m, c));
      break;
    case 7:
      neml2_model_jacobian(outputs, more, report, handle(m, MODEL), number(m), tensors(m, a),
                           once_in(m, 2) ? NULL : tensors(m, b));
      break;
    case 8: neml2_graph_run(outputs, PICK(m, 0, 1, -1), handle(m, GRAPH), tensors(m, a), PICK(m, 0, 1, 2)); break;
    case 9:
      neml2_graph_run_unguarded(outputs, 1, handle(m, GRAPH), tensors(m, a), PICK(m, -1, 0, 1, 3));
      break; /* never two */
    case 10:
      neml2_solve_begin((neml2_solve **)&given, handle(m, MODEL), tensors(m, a), NULL) == NEML2_OK
          ? keep(m, SOLVE, given)
          : (void)0;
      break;
    case 11:
      neml2_solve_begin_call((neml2_solve **)&given, handle(m, CALL), points(m)) == NEML2_OK ? keep(m, SOLVE, given)
                                                                                             : (void)0;
      break;
    case 12:
      neml2_solve_next((neml2_system **)&given, handle(m, SOLVE)) == NEML2_OK
          ? __atomic_store_n(&alive[SYSTEM][below(m, HELD)], given, __ATOMIC_RELAXED)
          : (void)0;
      break;
    case 13: given = handle(m, SOLVE), neml2_solve_end(outputs, report, (neml2_solve **)&given); break;
    case 14:
      neml2_solve_run(outputs, report, handle(m, MODEL), tensors(m, a), NULL, once_in(m, 16) ? NULL : solver, m);
      break;
    case 15:
      neml2_system_guess(m->memory, handle(m, SYSTEM)), neml2_system_residual(m->memory, handle(m, SYSTEM), m->memory);
      break;
    case 16:
      neml2_system_step(m->memory, NULL, handle(m, SYSTEM), m->memory),
          neml2_system_jacobian(m->memory, handle(m, SYSTEM), m->memory);
      break;
    case 17:
      neml2_system_matvec(m->memory, handle(m, SYSTEM), m->memory, m->memory),
          neml2_system_accept(handle(m, SYSTEM), m->memory, NULL, NULL);
      break;
  }
  if (report) keep(m, REPORT, made);
  keep_all(m, out), keep_all(m, more);
}

static void a_call_that_opens(monkey *m) {
  void *made = NULL;
  neml2_source given = source(m);
  int64_t needed;
  int32_t runtime;
  switch (below(m, 8)) {
    case 0:
    case 1:
    case 2: neml2_model_open((neml2_model **)&made, &given), keep(m, MODEL, made); break;
    case 3: given.path = package, neml2_graph_open((neml2_graph **)&made, &given), keep(m, GRAPH, made); break;
    case 4: given.path = package, neml2_graph_check(&runtime, &given); break;
    case 5: neml2_source_describe(NULL, 0, &needed, &given); break;
    case 6: neml2_libtorch_suggest(name(m)), neml2_operator_declare(name(m)); break;
    case 7: neml2_stream_set(number(m), NULL), neml2_xla_handler_get(&made); break;
  }
}

static void call_at_random(monkey *m) {
  const int64_t drawn = below(m, 1000);
  ++m->inside;
  if (tracing) fprintf(stderr, "call %lld of monkey %p\n", (long long)m->calls, (void *)m);
  ++m->calls;
  if (drawn < 3)
    a_call_that_opens(m);
  else if (drawn < 200)
    a_call_that_computes(m);
  else if (drawn < 230) {
    const int kind = (int)below(m, KINDS);
    release(m, kind, handle(m, kind));
  } else
    a_light_call(m);
  if (once_in(m, 50)) m->memory[below(m, 16384)] = once_in(m, 50) ? NAN : 1e-3 * (double)below(m, 10);
  --m->inside;
}

static int64_t calls = 100000;

static void *play(void *argument) {
  monkey *m = argument;
  m->memory = doubles(BUFFER);
  while (m->calls < calls) call_at_random(m);
  return NULL;
}

int main(int argc, char **argv) {
  monkey monkeys[16] = {{0, 0, 0, NULL}};
  pthread_t threads[16];
  const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  const int nthreads = argc > 3 ? atoi(argv[3]) : 1;
  if (argc > 1) calls = strtoll(argv[1], NULL, 10);
  tracing = getenv("NEML2_TEST_TRACE") != NULL;
  snprintf(package, sizeof package, "%s/cpu/float64/elasticity.pt2", artifact("elasticity"));
  artifact("viscoplastic"); /* both paths, before there are threads */
  neml2_model *untouched = load(artifact("elasticity"));
  CHECK(neml2_abi_version() == NEML2_ABI_VERSION && neml2_version() && nthreads <= 16);
  for (int k = 0; k < nthreads; ++k) monkeys[k].state = (seed + 1) * 0x9e3779b97f4a7c15u + (uint64_t)k * 977;
  for (int k = 1; k < nthreads; ++k)
    if (pthread_create(&threads[k], NULL, play, &monkeys[k]) != 0) return 1;
  play(&monkeys[0]);
  for (int k = 1; k < nthreads; ++k) pthread_join(threads[k], NULL);

  CHECK_OK(neml2_interrupt_set(NULL, NULL));
  CHECK_ELASTICITY(untouched);
  neml2_model_free(&untouched);
  neml2_model *fresh = load(artifact("elasticity"));
  CHECK_ELASTICITY(fresh);
  neml2_model_free(&fresh);
  for (int kind = 0; kind < KINDS; ++kind)
    for (int i = 0; i < HELD; ++i) release(&monkeys[0], kind, alive[kind][i]);
  for (int i = 0; i < HELD; ++i) {
    neml2_tensor *tensor = NULL;
    if (exported[i] && neml2_tensor_from_dlpack(&tensor, exported[i]) == NEML2_OK) neml2_tensor_free(&tensor);
  }
  for (int k = 0; k < nthreads; ++k) free(monkeys[k].memory);
  return CHECK_RESULT();
}
