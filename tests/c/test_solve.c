/* Own the solve: the library gives residuals and steps, and the loop is the caller's. */
#include "materials.h"

enum { N = 7, SIZE = STATE_SIZE };

static double norm(const double *r) {
  double sum = 0;
  for (int i = 0; i < SIZE; ++i) sum += r[i] * r[i];
  return sqrt(sum);
}

typedef struct {
  double atol, rtol, miters;
} tolerances;

static tolerances tolerances_of(const neml2_model *model) {
  tolerances t;
  REQUIRE_OK(neml2_model_option_get_number(&t.atol, model, "atol"));
  REQUIRE_OK(neml2_model_option_get_number(&t.rtol, model, "rtol"));
  REQUIRE_OK(neml2_model_option_get_number(&t.miters, model, "miters"));
  return t;
}

/* Newton's method for each point, as the library has it. Returns how many points failed. */
static int newton(neml2_system *system, tolerances t) {
  double u[N][SIZE], r[N][SIZE], du[N][SIZE], first[N];
  int32_t status[N], iterations[N] = {0}, singular[N];
  int64_t npoints = 0, n = 0;
  npoints = system_info(system).npoints;
  n = system_info(system).n;
  CHECK(npoints == N && n == SIZE);
  CHECK_OK(neml2_system_guess(u[0], system));
  for (int p = 0; p < N; ++p) status[p] = NEML2_NOT_CONVERGED;
  int left = N, failed = 0;
  for (int32_t k = 0; k < (int32_t)t.miters && left > 0; ++k) {
    if (k > 0) CHECK_OK(neml2_system_step(du[0], singular, system, u[0]));
    for (int p = 0; p < N && k > 0; ++p)
      if (status[p] == NEML2_NOT_CONVERGED) {
        for (int i = 0; i < SIZE; ++i) u[p][i] += du[p][i];
        iterations[p] = k;
        if (singular[p]) status[p] = NEML2_SINGULAR;
      }
    CHECK_OK(neml2_system_residual(r[0], system, u[0]));
    left = 0;
    for (int p = 0; p < N; ++p) {
      if (k == 0) first[p] = norm(r[p]);
      if (status[p] != NEML2_NOT_CONVERGED) continue;
      if (norm(r[p]) < t.atol || norm(r[p]) / first[p] < t.rtol)
        status[p] = NEML2_OK;
      else if (isfinite(norm(r[p])))
        ++left;
    }
  }
  for (int p = 0; p < N; ++p) failed += status[p] != NEML2_OK;
  CHECK_OK(neml2_system_accept(system, u[0], status, iterations));
  return failed;
}

/* One step of the cyclic history, its inputs as tensors and what the library gives for it. */
typedef struct {
  viscoplastic_block block;
  neml2_tensor *inputs[VISCOPLASTIC_INPUTS], *expected[VISCOPLASTIC_OUTPUTS], *outputs[VISCOPLASTIC_OUTPUTS];
  neml2_report *expected_report, *report;
} step;

/* In place: the tensors of the time look into the block. */
static void step_begin(step *s, const neml2_model *model) {
  memset(s, 0, sizeof *s);
  s->block = viscoplastic_after(model, N, 4);
  viscoplastic_load(&s->block, 5);
  viscoplastic_tensors(model, &s->block, s->inputs);
}

static void free_outputs(step *s) {
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&s->outputs[i]);
  neml2_report_free(&s->report);
}

static void step_free(step *s) {
  free_outputs(s);
  for (int i = 0; i < VISCOPLASTIC_INPUTS; ++i) neml2_tensor_free(&s->inputs[i]);
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) neml2_tensor_free(&s->expected[i]);
  neml2_report_free(&s->expected_report);
  viscoplastic_free(&s->block);
}

static void check_outputs(const step *s) {
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) {
    const int64_t ndim = tensor_info(s->expected[i]).ndim;
    CHECK_NEAR(ndim == 1 ? N : 6 * N, tensor_values(s->outputs[i]), tensor_values(s->expected[i]), 1e-12);
  }
}

static const void *report_values(const neml2_report *report, int32_t kind) {
  neml2_tensor *tensor = NULL;
  void *data = NULL;
  REQUIRE_OK(neml2_report_get(&tensor, report, kind));
  data = tensor_info(tensor).data;
  neml2_tensor_free(&tensor); /* the report keeps the storage */
  return data;
}

static void own_newton_agrees_with_the_library(neml2_model *model) {
  step s;
  neml2_solve *solve = NULL;
  neml2_system *system = NULL;
  step_begin(&s, model);
  REQUIRE_OK(neml2_model_forward(s.expected, &s.expected_report, model, s.inputs, NULL));
  REQUIRE_OK(neml2_solve_begin(&solve, model, s.inputs, NULL));
  REQUIRE_OK(neml2_solve_next(&system, solve));
  CHECK(system != NULL && newton(system, tolerances_of(model)) == 0);
  CHECK_OK(neml2_solve_next(&system, solve));
  CHECK(system == NULL);
  if (CHECK_OK(neml2_solve_end(s.outputs, &s.report, &solve))) {
    CHECK(solve == NULL);
    check_outputs(&s);
    CHECK_SAME(N, (const int32_t *)report_values(s.report, NEML2_REPORT_ITERATIONS),
               (const int32_t *)report_values(s.expected_report, NEML2_REPORT_ITERATIONS));
    CHECK_SAME(N, (const int32_t *)report_values(s.report, NEML2_REPORT_STATUS),
               (const int32_t *)report_values(s.expected_report, NEML2_REPORT_STATUS));
    const double *norms = report_values(s.report, NEML2_REPORT_RESIDUAL_NORM);
    for (int p = 0; p < N; ++p) CHECK(isfinite(norms[p]) && norms[p] > 0);
  }
  neml2_solve_free(&solve);
  step_free(&s);
}

/* The same through a call: in place, strided, outputs over nothing else. */
static void a_call_can_be_solved(neml2_model *model) {
  viscoplastic_block b = viscoplastic_after(model, N, 4);
  double *expected = doubles(STATE_SIZE * N);
  int32_t steps[N];
  neml2_call *call = viscoplastic_call(model, &b, 0);
  neml2_solve *solve = NULL;
  neml2_system *system = NULL;
  neml2_tensor *outputs[VISCOPLASTIC_OUTPUTS] = {NULL};
  viscoplastic_load(&b, 5);
  CHECK_OK(neml2_call_run(call, N));
  memcpy(expected, b.state, STATE_SIZE * N * sizeof *expected);
  memcpy(steps, b.iterations, sizeof steps);
  for (int i = 0; i < STATE_SIZE * N; ++i) b.state[i] = -1;
  for (int p = 0; p < N; ++p) b.iterations[p] = -1;

  REQUIRE_OK(neml2_solve_begin_call(&solve, call, N));
  neml2_call_free(&call);
  REQUIRE_OK(neml2_solve_next(&system, solve));
  newton(system, tolerances_of(model));
  CHECK(b.state[0] == -1); /* not before the end */
  CHECK_OK(neml2_solve_next(&system, solve));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_end(outputs, NULL, &solve));
  CHECK_ABOUT("outputs");
  CHECK_OK(neml2_solve_end(NULL, NULL, &solve));
  CHECK_NEAR(STATE_SIZE * N, b.state, expected, 1e-12);
  CHECK_SAME(N, b.iterations, steps);
  viscoplastic_free(&b);
  free(expected);
}

/* What the system says of itself fits together. */
static void the_system_is_consistent(neml2_model *model) {
  step s;
  neml2_solve *solve = NULL;
  neml2_system *system = NULL;
  double u[N][SIZE], r[N][SIZE], du[N][SIZE], y[N][SIZE], product[N][SIZE], v[N][SIZE];
  double *a = doubles(N * SIZE * SIZE);
  int64_t nunknowns = 0, total = 0;
  step_begin(&s, model);
  REQUIRE_OK(neml2_solve_begin(&solve, model, s.inputs, NULL));
  REQUIRE_OK(neml2_solve_next(&system, solve));
  nunknowns = system_info(system).nunknowns;
  CHECK(nunknowns == VISCOPLASTIC_OUTPUTS);
  CHECK_OK(neml2_system_guess(u[0], system));
  for (int64_t k = 0; k < nunknowns; ++k) {
    const char *name = NULL;
    int64_t unknown = -1, offset = -1, pieces = -1, size = -1;
    unknown = unknown_info(system, k).unknown;
    offset = unknown_info(system, k).offset;
    pieces = unknown_info(system, k).pieces;
    size = unknown_info(system, k).piece_size;
    name = variable_info(model, NEML2_UNKNOWN, unknown).name;
    CHECK(pieces == 1);
    total += size;
    /* The predictor is the old state. */
    for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i)
      if (strcmp(name, viscoplastic_state[i].name) == 0)
        for (int p = 0; p < N; ++p)
          CHECK_SAME(size, u[p] + offset, s.block.old_state + STATE_SIZE * p + viscoplastic_state[i].offset);
  }
  CHECK(total == SIZE);

  /* r + A du = 0, and A v is the change of r along v. */
  CHECK_OK(neml2_system_residual(r[0], system, u[0]));
  CHECK_OK(neml2_system_step(du[0], NULL, system, u[0]));
  CHECK_OK(neml2_system_jacobian(a, system, u[0]));
  CHECK_OK(neml2_system_matvec(y[0], system, u[0], du[0]));
  for (int p = 0; p < N; ++p)
    for (int i = 0; i < SIZE; ++i) {
      product[p][i] = 0;
      for (int j = 0; j < SIZE; ++j) product[p][i] += a[(p * SIZE + i) * SIZE + j] * du[p][j];
      v[p][i] = -r[p][i];
    }
  CHECK_NEAR(N * SIZE, product[0], v[0], 1e-10);
  CHECK_NEAR(N * SIZE, y[0], product[0], 1e-12);
  for (int p = 0; p < N; ++p)
    for (int i = 0; i < SIZE; ++i) u[p][i] += 1e-6 * du[p][i];
  CHECK_OK(neml2_system_residual(y[0], system, u[0]));
  for (int p = 0; p < N; ++p)
    for (int i = 0; i < SIZE; ++i) y[p][i] = (y[p][i] - r[p][i]) / 1e-6;
  CHECK_NEAR(N * SIZE, y[0], product[0], 1e-3); /* a forward difference */
  neml2_solve_free(&solve);
  free(a);
  step_free(&s);
}

static void what_is_out_of_order_is_refused(neml2_model *model) {
  step s;
  neml2_solve *solve = NULL;
  neml2_system *system = NULL, *none = NULL;
  double u[N][SIZE];
  int32_t status[N] = {NEML2_OK, NEML2_NON_FINITE};
  step_begin(&s, model);
  REQUIRE_OK(neml2_solve_begin(&solve, model, s.inputs, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_end(s.outputs, NULL, &solve));
  CHECK_SAYS("neml2_solve_next");
  REQUIRE_OK(neml2_solve_next(&system, solve));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_next(&none, solve));
  CHECK_SAYS("neml2_system_accept");
  CHECK(none == NULL);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_end(s.outputs, NULL, &solve));
  CHECK_SAYS("neml2_system_accept");
  CHECK_OK(neml2_system_guess(u[0], system));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_system_accept(system, u[0], status, NULL));
  CHECK_ABOUT("status");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_system_unknown_inspect(INFO(neml2_unknown_info), system, VISCOPLASTIC_OUTPUTS));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_system_guess(NULL, system));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_system_residual(u[0], NULL, u[0]));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_system_step(u[0], NULL, system, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_system_accept(system, NULL, NULL, NULL));
  CHECK_OK(neml2_system_accept(system, u[0], NULL, NULL)); /* it is usable after all that */
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_system_accept(system, u[0], NULL, NULL));
  CHECK_OK(neml2_solve_next(&system, solve));
  CHECK(system == NULL);
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_solve_end(s.outputs, NULL, &solve));
  CHECK_SAYS("which your solver accepted"); /* the guess is no solution */
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_end(s.outputs, NULL, &solve));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_next(&system, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_begin(NULL, model, s.inputs, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_begin(&solve, NULL, s.inputs, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_begin(&solve, model, NULL, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_begin_call(&solve, NULL, 1));
  neml2_tensor_free(&s.inputs[0]);
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_solve_begin(&solve, model, s.inputs, NULL));
  CHECK(solve == NULL);
  step_free(&s);
}

/* Nothing is written, and nothing leaks: the sanitizers watch. */
static void a_solve_can_be_abandoned(neml2_model *model) {
  step s;
  neml2_solve *solve = NULL;
  neml2_system *system = NULL;
  step_begin(&s, model);
  REQUIRE_OK(neml2_solve_begin(&solve, model, s.inputs, NULL));
  neml2_solve_free(&solve);
  REQUIRE_OK(neml2_solve_begin(&solve, model, s.inputs, NULL));
  REQUIRE_OK(neml2_solve_next(&system, solve));
  neml2_solve_free(&solve);
  CHECK(solve == NULL);
  neml2_solve_free(&solve);
  neml2_solve_free(NULL);
  step_free(&s);
}

/* What is given up is reported and NaN; the others are as they were accepted. */
static void failed_points_are_reported(neml2_model *model) {
  enum { BAD = 2 };
  step s;
  neml2_solve *solve = NULL;
  neml2_system *system = NULL;
  step_begin(&s, model);
  s.block.strain[6 * BAD + 1] = 1e200;
  REQUIRE_OK(neml2_solve_begin(&solve, model, s.inputs, NULL));
  REQUIRE_OK(neml2_solve_next(&system, solve));
  CHECK(newton(system, tolerances_of(model)) == 1);
  REQUIRE_OK(neml2_solve_next(&system, solve));
  CHECK(neml2_solve_end(s.outputs, &s.report, &solve) > NEML2_NON_FINITE);
  CHECK(solve == NULL);
  const int32_t *status = report_values(s.report, NEML2_REPORT_STATUS);
  const double *cut = report_values(s.report, NEML2_REPORT_SUGGESTED_CUT);
  int64_t stress = -1;
  REQUIRE_OK(neml2_model_variable_find(&stress, model, NEML2_OUTPUT, "stress"));
  for (int p = 0; p < N; ++p) {
    CHECK((status[p] > NEML2_NON_FINITE) == (p == BAD));
    CHECK((cut[p] < 1) == (p == BAD));
    CHECK(!isnan(tensor_values(s.outputs[stress])[6 * p]) == (p != BAD));
  }
  step_free(&s);
}

typedef struct {
  tolerances t;
  int calls;
  int32_t answer;
} context;

static int32_t solver(void *argument, neml2_system *system) {
  context *c = argument;
  ++c->calls;
  if (c->answer < 0) return c->answer;
  if (c->answer > 0) return c->answer; /* and forgets to accept */
  newton(system, c->t);
  return 0;
}

static int32_t passes_an_error_on(void *argument, neml2_system *system) {
  (void)argument;
  return neml2_system_unknown_inspect(INFO(neml2_unknown_info), system, 99);
}

static void the_solver_may_be_a_callback(neml2_model *model) {
  step s;
  context c = {tolerances_of(model), 0, 0};
  step_begin(&s, model);
  REQUIRE_OK(neml2_model_forward(s.expected, &s.expected_report, model, s.inputs, NULL));
  if (CHECK_OK(neml2_solve_run(s.outputs, NULL, model, s.inputs, NULL, solver, &c))) check_outputs(&s);
  CHECK(c.calls == 1);
  free_outputs(&s);
  c.answer = -42;
  CHECK_STATUS(-42, neml2_solve_run(s.outputs, NULL, model, s.inputs, NULL, solver, &c));
  CHECK_SAYS("-42");
  c.answer = 1;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_run(s.outputs, NULL, model, s.inputs, NULL, solver, &c));
  CHECK_SAYS("neml2_system_accept");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_run(s.outputs, NULL, model, s.inputs, NULL, passes_an_error_on, NULL));
  CHECK_SAYS("there is none at 99");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_solve_run(s.outputs, NULL, model, s.inputs, NULL, NULL, NULL));
  CHECK(s.outputs[0] == NULL);
  step_free(&s);
}

/* An explicit model has no systems: its solve is at its end at once. */
static void an_explicit_model_has_none(void) {
  neml2_model *model = load(artifact("elasticity"));
  double strain[3][6], expected[3][6];
  const int64_t shape[2] = {3, 6}, empty[2] = {0, 6};
  neml2_solve *solve = NULL;
  neml2_system *system = NULL;
  neml2_tensor *input = NULL, *output = NULL;
  some_strains(3, strain[0]);
  hooke(3, YOUNG, strain[0], expected[0]);
  input = tensor_over(strain[0], 2, shape);
  REQUIRE_OK(neml2_solve_begin(&solve, model, &input, NULL));
  memset(strain, 0, sizeof strain); /* the values were copied */
  CHECK_OK(neml2_solve_next(&system, solve));
  CHECK(system == NULL);
  CHECK_OK(neml2_solve_end(&output, NULL, &solve));
  CHECK_NEAR(18, tensor_values(output), expected[0], 1e-12);
  neml2_tensor_free(&input);
  neml2_tensor_free(&output);

  input = tensor_over(strain[0], 2, empty);
  REQUIRE_OK(neml2_solve_begin(&solve, model, &input, NULL));
  CHECK_OK(neml2_solve_next(&system, solve));
  CHECK(system == NULL);
  CHECK_OK(neml2_solve_end(&output, NULL, &solve));
  neml2_tensor_free(&input);
  neml2_tensor_free(&output);
  neml2_model_free(&model);
}

/* A part of a mesh may be empty: nothing need be bound. */
static void a_call_of_no_points_has_no_systems(const neml2_model *model) {
  neml2_call *call = NULL;
  neml2_solve *solve = NULL;
  neml2_system *system = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  REQUIRE_OK(neml2_solve_begin_call(&solve, call, 0));
  CHECK_OK(neml2_solve_next(&system, solve));
  CHECK(!system);
  CHECK_OK(neml2_solve_end(NULL, NULL, &solve));
  CHECK(!solve);
  neml2_call_free(&call);
}

int main(void) {
  neml2_model *model = load(artifact("viscoplastic"));
  a_call_of_no_points_has_no_systems(model);
  own_newton_agrees_with_the_library(model);
  a_call_can_be_solved(model);
  the_system_is_consistent(model);
  what_is_out_of_order_is_refused(model);
  a_solve_can_be_abandoned(model);
  failed_points_are_reported(model);
  the_solver_may_be_a_callback(model);
  neml2_model_free(&model);
  an_explicit_model_has_none();
  return CHECK_RESULT();
}
