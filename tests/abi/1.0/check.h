/* The checks of the C tests: one that fails says where and what, and the program goes on. */
#ifndef NEML2_CAPI_TESTS_CHECK_H
#define NEML2_CAPI_TESTS_CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neml2_capi.h"

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

#endif
