/* The two models of the tests and what is known of them. NEML2_TEST_ARTIFACTS is the folder that holds their artifacts.
 *
 * elasticity    stress(strain), isotropic, E = 200e3 (a parameter), nu = 0.3
 * viscoplastic  one backward Euler step of Perzyna viscoplasticity with Voce hardening and two back stresses
 */
#ifndef NEML2_CAPI_TESTS_MATERIALS_H
#define NEML2_CAPI_TESTS_MATERIALS_H

#include "check.h"

#define YOUNG 200e3
#define POISSON 0.3

static inline const char *artifact(const char *name) {
  static char paths[2][4096];
  char *path = paths[strcmp(name, "elasticity") != 0];
  const char *folder = getenv("NEML2_TEST_ARTIFACTS");
  if (!folder) {
    fprintf(stderr, "set NEML2_TEST_ARTIFACTS to the folder of the artifacts: examples/artifacts\n");
    exit(EXIT_FAILURE);
  }
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static inline neml2_model *load(const char *root) {
  neml2_model *model = NULL;
  REQUIRE_OK(neml2_model_open(&model, SOURCE(.path = root)));
  return model;
}

static inline double *doubles(int64_t n) {
  double *values = calloc(n > 0 ? (size_t)n : 1, sizeof *values);
  if (!values) exit(1);
  return values;
}

/* A tensor over `data`, which is freed by the caller. */
static inline neml2_tensor *tensor_over(const double *data, int64_t ndim, const int64_t *shape) {
  neml2_tensor *tensor = NULL;
  REQUIRE_OK(neml2_tensor_wrap(&tensor, (void *)data, NEML2_FLOAT64, ndim, shape, NULL, NULL, NULL));
  return tensor;
}

static inline double *tensor_values(const neml2_tensor *tensor) {
  void *data = NULL;
  data = tensor_info(tensor).data;
  return data;
}

/* Strains with six distinct components, other ones at each point. */
static inline void some_strains(int64_t n, double *strain) {
  const double base[6] = {1e-3, -3e-4, -2e-4, 2e-4, -1e-4, 5e-5};
  for (int64_t p = 0; p < n; ++p)
    for (int i = 0; i < 6; ++i) strain[6 * p + i] = base[i] * (1 + 0.1 * (double)(p % 17) + 0.01 * i);
}

/* Hooke's law in Mandel notation: stress = 2 G strain + lambda tr(strain) I. */
static inline void hooke(int64_t n, double young, const double *strain, double *stress) {
  const double shear = young / (2 * (1 + POISSON));
  const double lambda = young * POISSON / ((1 + POISSON) * (1 - 2 * POISSON));
  for (int64_t p = 0; p < n; ++p) {
    const double *e = strain + 6 * p;
    for (int i = 0; i < 6; ++i) stress[6 * p + i] = 2 * shear * e[i] + (i < 3 ? lambda * (e[0] + e[1] + e[2]) : 0);
  }
}

/* The model still gives right results: what must hold after every error. */
static inline void check_elasticity(const char *file, int line, const neml2_model *model, double young) {
  double strain[3][6], stress[3][6], expected[3][6];
  neml2_call *call = NULL;
  some_strains(3, strain[0]);
  hooke(3, young, strain[0], expected[0]);
  check_status(file, line, "create a call", NEML2_OK, neml2_call_create(&call, model));
  neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
  neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
  check_status(file, line, "evaluate elasticity", NEML2_OK, neml2_call_run(call, 3));
  check_near(file, line, "the stress equals Hooke's law", 18, stress[0], expected[0], 1e-12);
  neml2_call_free(&call);
}
#define CHECK_ELASTICITY(model) check_elasticity(__FILE__, __LINE__, model, YOUNG)
#define CHECK_ELASTICITY_WITH(model, young) check_elasticity(__FILE__, __LINE__, model, young)

/* The state of a viscoplastic point: stress, equivalent plastic strain, X1, X2. */
enum { STATE_SIZE = 19, VISCOPLASTIC_INPUTS = 8, VISCOPLASTIC_OUTPUTS = 4 };

/* A block of viscoplastic points in one step of a history. */
typedef struct {
  int64_t n;
  double time, old_time;
  double *strain, *old_strain;
  double *state, *old_state;
  int32_t *status, *iterations;
  double *residual_norm;
} viscoplastic_block;

static inline viscoplastic_block viscoplastic_create(int64_t n) {
  viscoplastic_block b = {n, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  b.strain = doubles(6 * n);
  b.old_strain = doubles(6 * n);
  b.state = doubles(STATE_SIZE * n);
  b.old_state = doubles(STATE_SIZE * n);
  b.status = calloc((size_t)n, sizeof *b.status);
  b.iterations = calloc((size_t)n, sizeof *b.iterations);
  b.residual_norm = doubles(n);
  return b;
}

static inline void viscoplastic_free(viscoplastic_block *b) {
  free(b->strain);
  free(b->old_strain);
  free(b->state);
  free(b->old_state);
  free(b->status);
  free(b->iterations);
  free(b->residual_norm);
}

static const struct {
  const char *name, *old_name;
  int64_t offset, size;
} viscoplastic_state[VISCOPLASTIC_OUTPUTS] = {{"stress", "stress~1", 0, 6},
                                              {"equivalent_plastic_strain", "equivalent_plastic_strain~1", 6, 1},
                                              {"X1", "X1~1", 7, 6},
                                              {"X2", "X2~1", 13, 6}};

/* A call over the points of `b` from `first` on, all bound; state variables interleave. */
static inline neml2_call *viscoplastic_call(const neml2_model *model, viscoplastic_block *b, int64_t first) {
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "t", &b->time, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "t~1", &b->old_time, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", b->strain + 6 * first, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain~1", b->old_strain + 6 * first, NEML2_FLOAT64, 6));
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) {
    const int64_t start = STATE_SIZE * first + viscoplastic_state[i].offset;
    CHECK_OK(neml2_call_bind(call, NEML2_INPUT, viscoplastic_state[i].old_name, b->old_state + start, NEML2_FLOAT64,
                             STATE_SIZE));
    CHECK_OK(
        neml2_call_bind(call, NEML2_OUTPUT, viscoplastic_state[i].name, b->state + start, NEML2_FLOAT64, STATE_SIZE));
  }
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, b->status + first, 1));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_ITERATIONS, b->iterations + first, 1));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_RESIDUAL_NORM, b->residual_norm + first, 1));
  return call;
}

/* The inputs of a step as tensors, in the order of the model's variables; `t` has no batch axis. */
static inline void viscoplastic_tensors(const neml2_model *model, const viscoplastic_block *b, neml2_tensor **inputs) {
  const int64_t shape[2] = {b->n, 6}, strides[2] = {STATE_SIZE, 1};
  for (int64_t i = 0; i < VISCOPLASTIC_INPUTS; ++i) {
    const char *name = NULL;
    name = variable_info(model, NEML2_INPUT, i).name;
    if (strcmp(name, "t") == 0) inputs[i] = tensor_over(&b->time, 0, NULL);
    if (strcmp(name, "t~1") == 0) inputs[i] = tensor_over(&b->old_time, 0, NULL);
    if (strcmp(name, "strain") == 0) inputs[i] = tensor_over(b->strain, 2, shape);
    if (strcmp(name, "strain~1") == 0) inputs[i] = tensor_over(b->old_strain, 2, shape);
    for (int k = 0; k < VISCOPLASTIC_OUTPUTS; ++k)
      if (strcmp(name, viscoplastic_state[k].old_name) == 0)
        REQUIRE_OK(neml2_tensor_wrap(&inputs[i], b->old_state + viscoplastic_state[k].offset, NEML2_FLOAT64,
                                     viscoplastic_state[k].size == 1 ? 1 : 2, shape, strides, NULL, NULL));
  }
}

/* The strain of step k of a cycle of 20, with some shear and another amplitude at each point. */
static inline void viscoplastic_load(viscoplastic_block *b, int k) {
  b->time = k;
  for (int64_t p = 0; p < b->n; ++p) {
    const double e = 0.01 / (1 + 0.5 * (double)(p % 5)) * sin(2 * 3.14159265358979323846 * k / 20);
    const double strain[6] = {e, -0.3 * e, -0.25 * e, 0.1 * e, -0.2 * e, 0.05 * e};
    memcpy(b->strain + 6 * p, strain, sizeof strain);
  }
}

static inline void viscoplastic_accept(viscoplastic_block *b) {
  b->old_time = b->time;
  memcpy(b->old_strain, b->strain, (size_t)(6 * b->n) * sizeof(double));
  memcpy(b->old_state, b->state, (size_t)(STATE_SIZE * b->n) * sizeof(double));
}

/* A block that has gone through the first `steps` steps of the cycle. */
static inline viscoplastic_block viscoplastic_after(const neml2_model *model, int64_t n, int steps) {
  viscoplastic_block b = viscoplastic_create(n);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  for (int k = 1; k <= steps; ++k) {
    viscoplastic_load(&b, k);
    CHECK_OK(neml2_call_run(call, n));
    viscoplastic_accept(&b);
  }
  neml2_call_free(&call);
  return b;
}

#endif
