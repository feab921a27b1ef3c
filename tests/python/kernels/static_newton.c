/* Newton's method on kernels that are linked into the program: no library, and no file of the artifact.
 *
 * Reads variables from standard input, each as NAME COUNT and COUNT numbers, [component][lane]. Prints the
 * unknowns in the same form, and the files that the process has mapped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neml2_kernel.h"

#define MOST 2048

typedef struct variable {
  char name[64];
  int count;
  double values[MOST];
} variable;

static variable variables[64];
static int known;

const neml2_kernel_set *neml2_kernels_of_viscoplastic(void);

static void fail(const char *what, const char *name) {
  fprintf(stderr, "%s: %s\n", what, name);
  exit(1);
}

static variable *named(const char *name, int make) {
  for (int i = 0; i < known; ++i)
    if (strcmp(variables[i].name, name) == 0) return &variables[i];
  if (!make || known == 64) fail("no variable", name);
  strcpy(variables[known].name, name);
  return &variables[known++];
}

static const neml2_kernel *kernel_named(const char *name) {
  const neml2_kernel_set *set = neml2_kernels_of_viscoplastic();
  for (int i = 0; i < set->count; ++i)
    if (strcmp(set->kernels[i]->name, name) == 0) return set->kernels[i];
  fail("no kernel", name);
  return NULL;
}

static void *scratch(int components, int lanes) {
  void *memory = NULL;
  const size_t bytes = (size_t)(components + 1) * (size_t)lanes * sizeof(double);
  if (posix_memalign(&memory, 128, bytes)) fail("no memory", "scratch");
  return memset(memory, 0, bytes);
}

/* Copy the variables of an array into it, or out of it. */
static void copy(const neml2_kernel_array *array, int lanes, double *values, int out) {
  const neml2_kernel_part whole = {array->name, 0, array->components};
  const neml2_kernel_part *parts = array->part_count ? array->parts : &whole;
  for (int i = 0; i < (array->part_count ? array->part_count : 1); ++i) {
    variable *of = named(parts[i].name, out);
    double *place = values + parts[i].offset * lanes;
    const int count = parts[i].components * lanes;
    if (out) of->count = count;
    if (of->count != count) fail("another size", parts[i].name);
    memcpy(out ? of->values : place, out ? place : of->values, (size_t)count * sizeof(double));
  }
}

static void predict(void) {
  const neml2_kernel *kernel = kernel_named("viscoplastic_predictor");
  void *inputs[16], *outputs[16], *kept = scratch(kernel->kept, kernel->lanes);
  for (int i = 0; i < kernel->input_count; ++i) {
    inputs[i] = scratch(kernel->inputs[i].components, kernel->lanes);
    copy(&kernel->inputs[i], kernel->lanes, inputs[i], 0);
  }
  for (int i = 0; i < kernel->output_count; ++i) outputs[i] = scratch(kernel->outputs[i].components, kernel->lanes);
  const void *const *given = (const void *const *)inputs;
  if (kernel->prepare) kernel->prepare(given, kept);
  kernel->run(given, outputs, kept);
  for (int i = 0; i < kernel->output_count; ++i) copy(&kernel->outputs[i], kernel->lanes, outputs[i], 1);
}

static void print_mapped(void) {
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strchr(line, '/')) printf("mapped %s", strchr(line, '/'));
  if (maps) fclose(maps);
}

int main(void) {
  const neml2_kernel *jacobian = kernel_named("viscoplastic_jacobian"), *solve = kernel_named("viscoplastic_solve");
  const int lanes = jacobian->lanes, size = jacobian->inputs[0].components;
  char name[64];
  int count;
  while (scanf("%63s %d", name, &count) == 2) {
    variable *of = named(name, 1);
    if (count > MOST) fail("too long", name);
    of->count = count;
    for (int i = 0; i < count; ++i)
      if (scanf("%lf", &of->values[i]) != 1) fail("no number", name);
  }
  predict();

  double *unknowns = scratch(size, lanes), *givens = scratch(jacobian->inputs[1].components, lanes);
  void *outputs[8]; /* of the Jacobian, which the step takes */
  for (int i = 0; i < jacobian->output_count; ++i) outputs[i] = scratch(jacobian->outputs[i].components, lanes);
  const double *residual = outputs[1];
  double *step = scratch(size, lanes), *trusted = scratch(1, lanes);
  double *prepared = scratch(jacobian->kept, lanes), *kept = scratch(solve->kept, lanes);
  const void *const of_jacobian[] = {unknowns, givens};
  const void *const *of_solve = (const void *const *)outputs;
  void *const steps[] = {step, trusted};
  copy(&jacobian->inputs[0], lanes, unknowns, 0);
  copy(&jacobian->inputs[1], lanes, givens, 0);
  if (jacobian->prepare) jacobian->prepare(of_jacobian, prepared);
  double first = 0, norm = 0;
  int iteration = 0;
  for (; iteration < 50; ++iteration) {
    jacobian->run(of_jacobian, outputs, prepared);
    norm = 0;
    for (int i = 0; i < size * lanes; ++i) norm = fmax(norm, fabs(residual[i]));
    if (iteration == 0) first = norm;
    if (!(norm > 1e-14 * first)) break;
    if (solve->prepare) solve->prepare(of_solve, kept);
    solve->run(of_solve, steps, kept);
    for (int l = 0; l < lanes; ++l)
      if (trusted[l] != 1) fail("pivots are not trusted", solve->name);
    for (int i = 0; i < size * lanes; ++i) unknowns[i] += step[i];
  }
  if (!(norm <= 1e-10 * first)) fail("no convergence", jacobian->name);
  copy(&jacobian->inputs[0], lanes, unknowns, 1);
  for (int i = 0; i < jacobian->inputs[0].part_count; ++i) {
    const variable *of = named(jacobian->inputs[0].parts[i].name, 0);
    printf("%s %d", of->name, of->count);
    for (int j = 0; j < of->count; ++j) printf(" %.17g", of->values[j]);
    printf("\n");
  }
  print_mapped();
  return 0;
}
