/* The checks of the C tests: one that fails says where and what, and the program goes on. */
#ifndef NEML2_CAPI_TESTS_CHECK_H
#define NEML2_CAPI_TESTS_CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neml2_capi_experimental.h"

#ifndef __cplusplus
/* Structures for one call, with their size: SOURCE(.path = "elasticity"). */
#define SIZED(type, ...) (&(type){.size = sizeof(type), __VA_ARGS__})
#define SOURCE(...) SIZED(neml2_source, __VA_ARGS__)
#define DEVICE(...) SIZED(neml2_device, __VA_ARGS__)
#define INFO(type) (&(type){.size = sizeof(type)})
#endif

static int check_failures;

static inline const char *check_message(void) {
  static char message[4096];
  neml2_error_message(message, sizeof message, NULL);
  return message;
}

static inline const char *check_subject(void) {
  static char subject[4096];
  neml2_error_subject(subject, sizeof subject, NULL);
  return subject;
}

static inline void check_failed(const char *file, int line, const char *what) {
  ++check_failures;
  fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
}

static inline int check_status(const char *file, int line, const char *what, int32_t expected, int32_t status) {
  if (status == expected) return 1;
  check_failed(file, line, what);
  fprintf(stderr, "  status %d, expected %d; last message: %s\n", (int)status, (int)expected, check_message());
  return 0;
}

/* Whether the message of the last error contains `text`. */
static inline void check_says(const char *file, int line, const char *text) {
  if (strstr(check_message(), text)) return;
  check_failed(file, line, "the message does not say what it should");
  fprintf(stderr, "  it lacks: %s\n  message: %s\n", text, check_message());
}

static inline void check_about(const char *file, int line, const char *subject) {
  if (strcmp(check_subject(), subject) == 0) return;
  check_failed(file, line, "the error is about something else");
  fprintf(stderr, "  subject: %s, expected: %s\n", check_subject(), subject);
}

/* Equal to `tolerance`, relative to the greatest magnitude of `expected`. */
static inline void check_near(const char *file, int line, const char *what, int64_t n, const double *values,
                              const double *expected, double tolerance) {
  double scale = 0, error = 0;
  int64_t worst = 0;
  for (int64_t i = 0; i < n; ++i) scale = fmax(scale, fabs(expected[i]));
  for (int64_t i = 0; i < n; ++i) {
    const double difference = fabs(values[i] - expected[i]);
    if (!(difference <= error)) error = difference, worst = i; /* NaN too */
    if (isnan(error)) break;
  }
  if (error <= tolerance * scale) return;
  check_failed(file, line, what);
  fprintf(stderr, "  [%lld] is %.17g, expected %.17g\n", (long long)worst, values[worst], expected[worst]);
}

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
#define CHECK_STATUS(expected, call) check_status(__FILE__, __LINE__, #call, (expected), (call))
#define CHECK_OK(call) CHECK_STATUS(NEML2_OK, call)
#define CHECK_SAYS(text) check_says(__FILE__, __LINE__, text)
#define CHECK_ABOUT(subject) check_about(__FILE__, __LINE__, subject)
#define CHECK_NEAR(n, values, expected, tolerance) \
  check_near(__FILE__, __LINE__, #values " equals " #expected, n, values, expected, tolerance)
#define CHECK_SAME(n, values, expected) CHECK(memcmp(values, expected, (size_t)(n) * sizeof *(values)) == 0)

/* What nothing can go on without. */
#define REQUIRE_OK(call)          \
  do {                            \
    if (!CHECK_OK(call)) exit(1); \
  } while (0)

#define CHECK_RESULT() (check_failures ? EXIT_FAILURE : EXIT_SUCCESS)

#ifndef __cplusplus
/* What the library says of something, by value. */
#define CHECK_INSPECTS(name, type, inspect, parameters, ...) \
  static inline type name parameters {                       \
    type info = {.size = sizeof info};                       \
    REQUIRE_OK(inspect(&info, __VA_ARGS__));                 \
    return info;                                             \
  }
CHECK_INSPECTS(model_info, neml2_model_info, neml2_model_inspect, (const neml2_model *model), model)
CHECK_INSPECTS(variable_info, neml2_variable_info, neml2_model_variable_inspect,
               (const neml2_model *model, int32_t kind, int64_t index), model, kind, index)
CHECK_INSPECTS(derivative_info, neml2_derivative_info, neml2_model_derivative_inspect,
               (const neml2_model *model, int32_t kind, int64_t index), model, kind, index)
CHECK_INSPECTS(history_info, neml2_history_info, neml2_model_history_inspect, (const neml2_model *model, int64_t index),
               model, index)
CHECK_INSPECTS(bound_info, neml2_bound_info, neml2_model_bound_inspect, (const neml2_model *model, int64_t index),
               model, index)
CHECK_INSPECTS(option_info, neml2_option_info, neml2_model_option_inspect, (const neml2_model *model, int64_t index),
               model, index)
CHECK_INSPECTS(tensor_info, neml2_tensor_info, neml2_tensor_inspect, (const neml2_tensor *tensor), tensor)
CHECK_INSPECTS(system_info, neml2_system_info, neml2_system_inspect, (const neml2_system *system), system)
CHECK_INSPECTS(unknown_info, neml2_unknown_info, neml2_system_unknown_inspect,
               (const neml2_system *system, int64_t index), system, index)
CHECK_INSPECTS(graph_info, neml2_graph_info, neml2_graph_inspect, (const neml2_graph *graph), graph)
CHECK_INSPECTS(graph_variable_info, neml2_graph_variable_info, neml2_graph_variable_inspect,
               (const neml2_graph *graph, int32_t kind, int64_t index), graph, kind, index)
CHECK_INSPECTS(argument_info, neml2_argument_info, neml2_operator_call_inspect,
               (const neml2_operator_call *call, int64_t index), call, index)
CHECK_INSPECTS(device_info, neml2_device, neml2_scheduler_inspect, (const neml2_scheduler *scheduler, int64_t index),
               scheduler, index)
#endif

/* How many errors the last failed call met. */
static inline int64_t error_count(void) {
  int64_t count = -1;
  REQUIRE_OK(neml2_error_count(&count));
  return count;
}

#endif
