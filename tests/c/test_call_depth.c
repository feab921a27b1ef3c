/* From neml2_call_run to the code of a package it is a short way, the first time and every time after.
 *
 * A package takes memory for a list of its inputs whenever it runs. malloc is this program's, and looks at the stack from
 * there: between the frames of this program and of the package lie the library's frames, which are counted by the
 * files that they are in. Nothing but unwind tables is needed for that, which all code has, however it is optimized.
 */
#define _GNU_SOURCE
#include "materials.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

int main(void) { return 77; } /* a sanitizer has a malloc of its own */

#else

#include <dlfcn.h>
#include <execinfo.h>

enum { MOST = 100, REPEATED = 12, FIRST = 16 };

static int counting, depth; /* the greatest that was seen; 0: none */

/* What a frame is of. Packages are opened through /proc/self/fd. */
enum { OTHER, LIBRARY, PACKAGE };
static int file_of(void *frame) {
  Dl_info info;
  if (!dladdr(frame, &info) || !info.dli_fname) return OTHER;
  if (strncmp(info.dli_fname, "/proc/", 6) == 0) return PACKAGE;
  return strstr(info.dli_fname, "libneml2_capi") ? LIBRARY : OTHER;
}

/* The frames of the library, and the run of the package that they called. */
static void look(void) {
  void *frames[MOST];
  int count = backtrace(frames, MOST), of_library = 0;
  while (count > 0 && file_of(frames[count - 1]) == OTHER) --count;
  while (count > 0 && file_of(frames[count - 1]) == LIBRARY) --count, ++of_library;
  if (count > 0 && file_of(frames[count - 1]) == PACKAGE && of_library + 1 > depth) depth = of_library + 1;
}

void *__libc_malloc(size_t bytes);
__attribute__((visibility("default"))) void *malloc(size_t bytes) {
  if (counting) {
    counting = 0; /* what looks may take memory, too */
    look();
    counting = 1;
  }
  return __libc_malloc(bytes);
}

static void expect_at_most(int line, const char *what, int most, neml2_call *call, int64_t points) {
  depth = 0;
  counting = 1;
  const int32_t status = neml2_call_run(call, points);
  counting = 0;
  check_status(__FILE__, line, what, NEML2_OK, status);
  if (depth == 0) check_failed(__FILE__, line, "the package takes no memory when it runs: nothing was counted");
  if (depth > most) {
    check_failed(__FILE__, line, what);
    fprintf(stderr, "  at %d points the package's run is %d deep, expected at most %d\n", (int)points, depth, most);
  }
}

static void expect_a_short_way(int line, const char *what, neml2_call *call) {
  const int64_t points[] = {1, 7, 3};
  for (int i = 0; i < 3; ++i) {
    expect_at_most(line, what, FIRST, call, points[i]);
    for (int again = 0; again < 3; ++again) expect_at_most(line, what, REPEATED, call, points[i]);
  }
}
#define EXPECT_A_SHORT_WAY(what, call) expect_a_short_way(__LINE__, what, call)

int main(void) {
  double strain[7 * 6], stress[7 * 6], direction[7 * 6], along[7 * 6], tangent[7 * 36];
  neml2_model *model = load(artifact("elasticity"));
  neml2_call *call = NULL;
  some_strains(7, strain);
  some_strains(7, direction);
  CHECK_OK(neml2_model_option_set_text(model, "kernels", "off")); /* if there are some, no package runs */
  look();                                                         /* which takes memory when it is first called */

  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  EXPECT_A_SHORT_WAY("forward", call);
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", tangent, NEML2_FLOAT64, 36));
  EXPECT_A_SHORT_WAY("jacobian", call);
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", NULL, NEML2_FLOAT64, 36));
  CHECK_OK(neml2_call_bind(call, NEML2_TANGENT, "strain", direction, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", along, NEML2_FLOAT64, 6));
  EXPECT_A_SHORT_WAY("jvp", call);
  neml2_call_free(&call);
  neml2_model_free(&model);
  return CHECK_RESULT();
}

#endif
