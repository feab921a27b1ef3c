/* Many steps by one function: the same bits as one step after another, whatever the layout of the arrays. */
#include "materials.h"

enum { N = 130, STEPS = 7, STATE = STATE_SIZE };

static neml2_model *model;
static double state_of[STEPS][N][STATE]; /* of one step after another */
static int32_t iterations_of[STEPS][N];
static double start[N][STATE], times[STEPS];

static void make_expected(void) {
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  for (int k = 0; k < STEPS; ++k) {
    viscoplastic_load(&b, k + 1);
    times[k] = b.time;
    CHECK_OK(neml2_call_run(call, N));
    memcpy(state_of[k], b.state, sizeof state_of[k]);
    memcpy(iterations_of[k], b.iterations, sizeof iterations_of[k]);
    viscoplastic_accept(&b);
  }
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

/* Strides from a point and from a step to the next, in points. */
typedef struct {
  int64_t point, step;
} layout;

static const layout by_step = {1, N}, by_point = {STEPS, 1}, last_step = {1, 0};

static int64_t place(layout l, int64_t step, int64_t point) { return l.step * step + l.point * point; }

typedef struct {
  double strain[STEPS * N][6], state[STEPS * N][STATE];
  int32_t status[STEPS * N], iterations[STEPS * N];
} arrays;

static void bind(neml2_call *call, int32_t role, const char *name, double *data, int64_t size, layout l) {
  CHECK_OK(neml2_call_bind(call, role, name, data, NEML2_FLOAT64, size * l.point));
  CHECK_OK(neml2_call_step_stride_set(call, role, name, size * l.step));
}

/* A call through all steps, from rest, with what is given in one layout and results in another. */
static neml2_call *replay(arrays *a, layout given, layout results) {
  neml2_call *call = NULL;
  static double zero[6], no_time;
  for (int k = 0; k < STEPS; ++k) {
    viscoplastic_block b = viscoplastic_create(N);
    viscoplastic_load(&b, k + 1);
    for (int p = 0; p < N; ++p) memcpy(a->strain[place(given, k, p)], b.strain + 6 * p, sizeof a->strain[0]);
    viscoplastic_free(&b);
  }
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "t", times, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_step_stride_set(call, NEML2_INPUT, "t", 1));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "t~1", &no_time, NEML2_FLOAT64, 0));
  bind(call, NEML2_INPUT, "strain", a->strain[0], 6, given);
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain~1", zero, NEML2_FLOAT64, 0));
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) {
    const int64_t offset = viscoplastic_state[i].offset;
    CHECK_OK(
        neml2_call_bind(call, NEML2_INPUT, viscoplastic_state[i].old_name, start[0] + offset, NEML2_FLOAT64, STATE));
    bind(call, NEML2_OUTPUT, viscoplastic_state[i].name, a->state[0] + offset, STATE, results);
  }
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, a->status, results.point));
  CHECK_OK(neml2_call_report_step_stride_set(call, NEML2_REPORT_STATUS, results.step));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_ITERATIONS, a->iterations, results.point));
  CHECK_OK(neml2_call_report_step_stride_set(call, NEML2_REPORT_ITERATIONS, results.step));
  return call;
}

/* The steps from `first` on that were made equal, to the bit, one step after another. */
static void expect(int line, const arrays *a, layout results, int first, int made) {
  int unequal = 0;
  for (int k = first; k < made; ++k)
    for (int p = 0; p < N; ++p) {
      const int64_t at = place(results, k, p);
      unequal += memcmp(a->state[at], state_of[k][p], sizeof state_of[k][p]) != 0;
      unequal += a->iterations[at] != iterations_of[k][p] || a->status[at] != NEML2_OK;
    }
  if (unequal) check_failed(__FILE__, line, "points differ from one step after another");
}

static void every_layout(void) {
  static arrays a;
  const layout layouts[] = {by_step, by_point, last_step};
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) {
      int64_t made = -1;
      neml2_call *call = replay(&a, layouts[i], layouts[j]);
      for (int again = 0; again < 2; ++again) {
        CHECK_OK(neml2_call_run_steps(&made, call, N, STEPS));
        CHECK(made == STEPS);
        expect(__LINE__, &a, layouts[j], j == 2 ? STEPS - 1 : 0, STEPS);
      }
      /* Fewer steps and fewer points: what is behind them stays. */
      memset(a.state, 0, sizeof a.state);
      CHECK_OK(neml2_call_run_steps(NULL, call, 5, 2));
      CHECK(memcmp(a.state[place(layouts[j], 1, 4)], state_of[1][4], sizeof start[0]) == 0);
      CHECK(memcmp(a.state[place(layouts[j], 0, 5)], start[0], sizeof start[0]) == 0);
      CHECK(j == 2 || memcmp(a.state[place(layouts[j], 2, 4)], start[0], sizeof start[0]) == 0);
      neml2_call_free(&call);
    }
}

static void chunks_and_threads(void) {
  static arrays a;
  const double options[][2] = {{0, 2}, {7, 1}, {64, 2}, {N, 1}};
  neml2_call *call = replay(&a, by_step, by_step);
  for (int i = 0; i < 4; ++i) {
    CHECK_OK(neml2_model_option_set_number(model, "chunk", options[i][0]));
    CHECK_OK(neml2_model_option_set_number(model, "threads", options[i][1]));
    memset(a.state, 0, sizeof a.state);
    CHECK_OK(neml2_call_run_steps(NULL, call, N, STEPS));
    expect(__LINE__, &a, by_step, 0, STEPS);
  }
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 0));
  CHECK_OK(neml2_model_option_set_number(model, "threads", 1));
  neml2_call_free(&call);
}

/* A point fails in the middle: all steps before are made, the failed one is as neml2_call_run() leaves it. */
static void a_step_fails(void) {
  static arrays a;
  enum { BAD_STEP = 4, BAD_POINT = 110 };
  const layout layouts[] = {by_step, last_step};
  for (int i = 0; i < 2; ++i) {
    int64_t made = -1;
    neml2_call *call = replay(&a, by_step, layouts[i]);
    double *const bad = a.strain[place(by_step, BAD_STEP, BAD_POINT)];
    const double good = bad[0];
    bad[0] = NAN;
    CHECK_STATUS(NEML2_NON_FINITE, neml2_call_run_steps(&made, call, N, STEPS));
    CHECK(made == BAD_STEP);
    CHECK_SAYS("1 of 130 points");
    CHECK_SAYS("the input 'strain' is not finite");
    expect(__LINE__, &a, layouts[i], i == 1 ? BAD_STEP - 1 : 0, BAD_STEP);
    if (i == 0)
      for (int p = 0; p < N; ++p)
        CHECK(a.status[place(by_step, BAD_STEP, p)] == (p == BAD_POINT ? NEML2_NON_FINITE : 0));
    /* The first step of all: nothing is made, and that step is as neml2_call_run() leaves it, though points before went on. */
    a.strain[N - 2][2] = NAN;
    for (int chunk = 0; chunk <= 7; chunk += 7) {
      CHECK_OK(neml2_model_option_set_number(model, "chunk", chunk));
      memset(a.state, 0, sizeof a.state);
      CHECK_STATUS(NEML2_NON_FINITE, neml2_call_run_steps(&made, call, N, STEPS));
      CHECK(made == 0);
      for (int p = 0; p < N; ++p)
        CHECK(p == N - 2 || memcmp(a.state[place(layouts[i], 0, p)], state_of[0][p], sizeof start[0]) == 0);
    }
    CHECK_OK(neml2_model_option_set_number(model, "chunk", 0));
    CHECK_OK(neml2_call_run_steps(&made, call, 1, STEPS));
    CHECK(made == STEPS);
    bad[0] = good;
    neml2_call_free(&call);
  }
}

/* One iteration is too few where points begin to flow. */
static void points_do_not_converge(void) {
  static arrays a;
  int64_t made = -1;
  neml2_call *call = replay(&a, by_step, by_step);
  CHECK_OK(neml2_model_option_set_number(model, "miters", 5));
  const int32_t status = neml2_call_run_steps(&made, call, N, STEPS);
  CHECK(status == NEML2_NOT_CONVERGED && made < STEPS);
  CHECK_SAYS("did not converge");
  expect(__LINE__, &a, by_step, 0, (int)made);
  CHECK_OK(neml2_model_option_set_number(model, "miters", 25));
  neml2_call_free(&call);
}

/* Some chunks have gone on when a later one fails. */
static void chunks_that_fail(void) {
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 64));
  for (int threads = 1; threads <= 2; ++threads) {
    CHECK_OK(neml2_model_option_set_number(model, "threads", threads));
    a_step_fails();
    points_do_not_converge();
  }
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 0));
  CHECK_OK(neml2_model_option_set_number(model, "threads", 1));
}

/* A history goes on where the last one ended. */
static void one_after_the_other(void) {
  static arrays a;
  int64_t made = 0;
  neml2_call *call = replay(&a, by_step, by_step);
  CHECK_OK(neml2_call_run_steps(&made, call, N, 3));
  bind(call, NEML2_INPUT, "strain", a.strain[3 * N], 6, by_step);
  bind(call, NEML2_INPUT, "strain~1", a.strain[2 * N], 6, last_step);
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "t", times + 3, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_step_stride_set(call, NEML2_INPUT, "t", 1));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "t~1", times + 2, NEML2_FLOAT64, 0));
  for (int i = 0; i < VISCOPLASTIC_OUTPUTS; ++i) {
    const int64_t offset = viscoplastic_state[i].offset;
    bind(call, NEML2_INPUT, viscoplastic_state[i].old_name, a.state[2 * N] + offset, STATE, last_step);
    bind(call, NEML2_OUTPUT, viscoplastic_state[i].name, a.state[3 * N] + offset, STATE, by_step);
  }
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, a.status + 3 * N, 1));
  CHECK_OK(neml2_call_report_step_stride_set(call, NEML2_REPORT_STATUS, N));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_ITERATIONS, a.iterations + 3 * N, 1));
  CHECK_OK(neml2_call_report_step_stride_set(call, NEML2_REPORT_ITERATIONS, N));
  CHECK_OK(neml2_call_run_steps(&made, call, N, STEPS - 3));
  CHECK(made == STEPS - 3);
  expect(__LINE__, &a, by_step, 0, STEPS);
  neml2_call_free(&call);
}

static void mistakes(void) {
  static arrays a;
  int64_t made = 7;
  neml2_call *call = replay(&a, by_step, by_step);
  CHECK_OK(neml2_call_run_steps(&made, call, 0, 3));
  CHECK(made == 3);
  CHECK_OK(neml2_call_run_steps(&made, call, N, 0));
  CHECK(made == 0);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run_steps(&made, call, N, -1));
  CHECK_ABOUT("nsteps");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run_steps(&made, NULL, N, 1));
  CHECK(made == 0);

  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_step_stride_set(call, NEML2_PARAMETER, "strain", 1));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_step_stride_set(call, NEML2_INPUT, "strian", 1));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_step_stride_set(call, NEML2_INPUT, "strain", -1));
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_call_report_step_stride_set(call, NEML2_REPORT_SUGGESTED_CUT, 1));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_report_step_stride_set(call, 9, 1));
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_call_derivative_step_stride_set(call, NEML2_INPUT, "stress", "strain", 36));

  /* Steps that overlap, and an output that is an input. */
  CHECK_OK(neml2_call_step_stride_set(call, NEML2_OUTPUT, "X1", STATE * (N - 1)));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_call_run_steps(&made, call, N, STEPS));
  CHECK_ABOUT("X1");
  /* All steps of a point lie within the point, too close to each other: of three points, and of one. */
  static double stress[3 * STEPS * 6];
  bind(call, NEML2_OUTPUT, "X1", a.state[0] + 7, STATE, by_step);
  for (int points = 1; points <= 3; points += 2)
    for (int64_t distance = 1; distance <= 6; ++distance) {
      bind(call, NEML2_OUTPUT, "stress", stress, 1, (layout){6 * STEPS, distance});
      CHECK_STATUS(distance < 6 ? NEML2_ERROR_SHAPE : NEML2_OK, neml2_call_run_steps(&made, call, points, STEPS));
      if (distance < 6) CHECK_ABOUT("stress");
    }
  bind(call, NEML2_OUTPUT, "stress", a.state[0], STATE, by_step);
  bind(call, NEML2_OUTPUT, "X1", start[0] + 7, STATE, last_step);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run_steps(&made, call, N, STEPS));
  CHECK_OK(neml2_call_run_steps(&made, call, N, 1)); /* as in one run */
  memset(start, 0, sizeof start);
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "X1", NULL, NEML2_FLOAT64, STATE));
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_call_run_steps(&made, call, N, STEPS));
  CHECK_ABOUT("X1");
  bind(call, NEML2_OUTPUT, "X1", a.state[0] + 7, STATE, by_step);
  CHECK_OK(neml2_call_run_steps(&made, call, N, STEPS));
  expect(__LINE__, &a, by_step, 0, STEPS);

  /* Binding an array again takes its step stride: each step then writes the same row. */
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", a.state[0], NEML2_FLOAT64, STATE));
  memset(a.state, 0, sizeof a.state);
  CHECK_OK(neml2_call_run_steps(&made, call, N, STEPS));
  CHECK(memcmp(a.state[0], state_of[STEPS - 1][0], 6 * sizeof(double)) == 0 && a.state[N][0] == 0);
  neml2_call_free(&call);
}

/* Strains and tangents of the combined law, whose derivatives go on by steps, too. */
static void tangents(void) {
  static arrays a;
  static double tangent[STEPS][N][6][6], expected[N][6][6], unit[6][6];
  neml2_call *call = replay(&a, by_step, by_step);
  int64_t made = 0;
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", tangent, NEML2_FLOAT64, 36));
  CHECK_OK(neml2_call_derivative_step_stride_set(call, NEML2_INPUT, "stress", "strain", 36 * N));
  CHECK_OK(neml2_call_run_steps(&made, call, N, STEPS));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", expected, NEML2_FLOAT64, 36));
  for (int steps = STEPS; steps > STEPS - 3; --steps) {
    CHECK_OK(neml2_call_run_steps(&made, call, N, steps));
    CHECK(memcmp(tangent[steps - 1], expected, sizeof expected) == 0);
  }
  /* A state that moves: what was not compiled, and what a solve does not take. */
  CHECK_OK(neml2_call_bind_input_derivative(call, "stress~1", NEML2_INPUT, "strain", expected, NEML2_FLOAT64, 36));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run_steps(&made, call, N, STEPS));
  CHECK_SAYS("'stress~1:strain'");
  CHECK_OK(neml2_call_bind_input_derivative(call, "stress~1", NEML2_INPUT, "strain", unit, NEML2_FLOAT64, 0));
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED, neml2_call_run_steps(&made, call, N, STEPS));
  CHECK_SAYS("without the derivative 'stress:stress~1'");
  neml2_solve *solve = NULL;
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED, neml2_solve_begin_call(&solve, call, N));
  CHECK_STATUS(NEML2_ERROR_SHAPE,
               neml2_call_bind_input_derivative(call, "stress~1", NEML2_INPUT, "strain", unit, NEML2_FLOAT64, 6));
  CHECK_STATUS(NEML2_ERROR_NAME,
               neml2_call_bind_input_derivative(call, "stress~2", NEML2_INPUT, "strain", unit, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind_input_derivative(call, "stress~1", NEML2_INPUT, "strain", NULL, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_run_steps(&made, call, N, STEPS));
  CHECK_OK(neml2_call_bind(call, NEML2_TANGENT, "strain", a.strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_JVP, "stress", expected, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", NULL, NEML2_FLOAT64, 36));
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED, neml2_call_run_steps(&made, call, N, STEPS));
  neml2_call_free(&call);
}

static void (*const tests[])(void) = {every_layout,     chunks_and_threads,  a_step_fails, points_do_not_converge,
                                      chunks_that_fail, one_after_the_other, mistakes};

int main(void) {
  /* On kernels, and on packages. */
  const char *const kernels[] = {"auto", "off"};
  for (int i = 0; i < 2; ++i) {
    model = load(artifact("viscoplastic"));
    CHECK_OK(neml2_model_option_set_text(model, "kernels", kernels[i]));
    make_expected();
    for (size_t k = 0; k < sizeof tests / sizeof *tests; ++k) tests[k]();
    neml2_model_free(&model);
  }
  model = load(artifact("combined_hardening"));
  tangents();
  neml2_model_free(&model);
  return CHECK_RESULT();
}
