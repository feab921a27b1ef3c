/* The work that is tortured: an artifact or a plug-in is opened, described, evaluated in every way, and freed.
 *
 * A failed call is reported to the torturer. A walk that resumes makes the call again, on the same handles, and must
 * come to the same numbers; another one frees what it has, and ends. */
#ifndef NEML2_CAPI_TESTS_WALK_H
#define NEML2_CAPI_TESTS_WALK_H

#include <stddef.h>
#include <stdint.h>

enum { WALK_MOST_NUMBERS = 1 << 16 };

typedef struct walk {
  const char *name;               /* of the work, such as "elasticity" */
  const char *path;               /* the artifact, the package or the plug-in */
  int32_t runtime;                /* NEML2_RUNTIME_* */
  int32_t (*work)(struct walk *); /* returns NEML2_OK if it came to its end */
  int threads;                    /* that share an evaluation */
  int resumes;                    /* whether calls that failed are made again */
  void (*failed)(const struct walk *, const char *call, int32_t status, const char *message);
  int64_t count; /* of the numbers that came out */
  double numbers[WALK_MOST_NUMBERS];
} walk;

/* Fills in the work of this name: "elasticity", "viscoplastic" on kernels, with "-packages" on packages, "graph" or
 * "plugin"; `plugin` is the library of the last one. Returns 0 for another name. */
int walk_named(walk *w, const char *name, const char *plugin);

#endif
