/* What becomes of a point is its own affair: it does not depend on the chunk that it is in, on its neighbours that are not
 * finite, or on how far apart the points lie. */
#include "materials.h"

enum { N = 5000, GAP = -7 };

static neml2_model *model;
static double strain[N][6], expected[N][6], tangent[36];
static double *stress, *tangents; /* as long as the widest point stride needs */

/* The points that are not finite: at the ends of all, and at the ends and in the middle of chunks. */
static const int bad[] = {0, 63, 64, 100, 2047, 2048, 3000, N - 1};
enum { BAD = sizeof bad / sizeof *bad };

static int is_bad(int p) {
  for (int i = 0; i < BAD; ++i)
    if (bad[i] == p) return 1;
  return 0;
}

/* One value per point, and in the gap behind it what was there before. */
static void check_points(const double *values, int64_t size, int64_t stride, const double *want, int64_t want_stride) {
  int wrong = 0;
  for (int p = 0; p < N; ++p) {
    wrong += memcmp(values + p * stride, want + p * want_stride, (size_t)size * sizeof *want) != 0;
    for (int64_t i = size; i < stride; ++i) wrong += values[p * stride + i] != (double)GAP;
  }
  CHECK(wrong == 0);
}

static void run(int chunk, int threads, int64_t stride, int32_t order, int32_t worst) {
  static int32_t status[2 * N];
  neml2_call *call = NULL;
  CHECK_OK(neml2_model_option_set_number(model, "chunk", chunk));
  CHECK_OK(neml2_model_option_set_number(model, "threads", threads));
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_block_order_set(call, order));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6 + stride));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, status, stride > 0 ? 2 : 1));
  for (int with_tangent = 0; with_tangent < 2; ++with_tangent) {
    for (int64_t i = 0; i < N * (6 + stride); ++i) stress[i] = GAP;
    for (int64_t i = 0; i < N * (36 + stride); ++i) tangents[i] = GAP;
    for (int i = 0; i < 2 * N; ++i) status[i] = -1;
    if (with_tangent)
      CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", tangents, NEML2_FLOAT64, 36 + stride));
    CHECK_STATUS(worst, neml2_call_run(call, N));
    check_points(stress, 6, 6 + stride, expected[0], 6);
    if (with_tangent) check_points(tangents, 36, 36 + stride, tangent, 0);
    for (int p = 0; p < N; ++p)
      if (status[stride > 0 ? 2 * p : p] != (worst != NEML2_OK && is_bad(p) ? NEML2_NON_FINITE : NEML2_OK)) {
        CHECK(0 && "the status of each point is its own");
        break;
      }
    for (int p = 0; stride > 0 && p < N; ++p) CHECK(status[2 * p + 1] == -1);
  }
  neml2_call_free(&call);
}

/* Points one by one, whose results all others must equal bit for bit. */
static void evaluate_alone(void) {
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", tangent, NEML2_FLOAT64, 36));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain[1], NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_run(call, 1));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", NULL, NEML2_FLOAT64, 36));
  for (int p = 0; p < N; ++p) {
    CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain[p], NEML2_FLOAT64, 6));
    CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", expected[p], NEML2_FLOAT64, 6));
    neml2_call_run(call, 1);
  }
  neml2_call_free(&call);
}

static void evaluate_together(int32_t worst) {
  evaluate_alone();
  const int chunks[] = {0, 1, 64, 333};
  for (int i = 0; i < 4; ++i)
    for (int threads = 1; threads < 3; ++threads)
      for (int64_t gap = 0; gap < 8; gap += 7) {
        run(chunks[i], threads, gap, NEML2_OUTPUT_FIRST, worst);
        run(chunks[i], threads, gap, NEML2_INPUT_FIRST, worst); /* the tangent is symmetric */
      }
}

int main(void) {
  model = load(artifact("elasticity"));
  stress = doubles(N * 16);
  tangents = doubles(N * 48);
  some_strains(N, strain[0]);
  evaluate_together(NEML2_OK);
  const double numbers[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < BAD; ++i) strain[bad[i]][i % 6] = numbers[i % 3];
  evaluate_together(NEML2_NON_FINITE);
  free(stress);
  free(tangents);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
