/* The consistent tangent of a plastic step, in both block orders. The load turns before, and the back stresses do not
 * follow at once: the tangent is not symmetric. */
#include "scenario.h"

enum { N = 3, STEPS = 5 };

/* Central differences of a step: [point][stress][strain]. */
static void difference(neml2_call *call, viscoplastic_block *b, double *tangent) {
  const double h = 1e-7;
  double plus[6 * N];
  for (int j = 0; j < 6; ++j) {
    for (int p = 0; p < N; ++p) b->strain[6 * p + j] += h;
    CHECK_OK(neml2_call_run(call, N));
    for (int p = 0; p < N; ++p) memcpy(plus + 6 * p, b->state + STATE_SIZE * p, 6 * sizeof *plus);
    for (int p = 0; p < N; ++p) b->strain[6 * p + j] -= 2 * h;
    CHECK_OK(neml2_call_run(call, N));
    for (int p = 0; p < N; ++p) {
      b->strain[6 * p + j] += h;
      for (int i = 0; i < 6; ++i)
        tangent[36 * p + 6 * i + j] = (plus[6 * p + i] - b->state[STATE_SIZE * p + i]) / (2 * h);
    }
  }
}

/* Returns the Frobenius norm of the difference of two blocks of 6 by 6. */
static double distance(const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < 36; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sqrt(sum);
}

static void bind_tangent(neml2_call *call, double *tangent) {
  CHECK_OK(neml2_call_bind_derivative(call, "stress", NEML2_INPUT, "strain", tangent, NEML2_FLOAT64, 36));
}

int main(void) {
  scenario_begin();
  static const double zero[36];
  neml2_model *model = load(artifact("combined_hardening"));
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  double tangent[36 * N], other_order[36 * N], transpose[36 * N], differences[36 * N];
  for (int k = 1; k <= STEPS; ++k) {
    cycle_load(&b, 0, k);
    CHECK_OK(neml2_call_run(call, N));
    viscoplastic_accept(&b);
  }
  b.time = STEPS + 1;
  for (int p = 0; p < N; ++p)
    for (int i = 0; i < 6; ++i) b.strain[6 * p + i] += 0.005 / (1 + 0.5 * p) * direction[5 - i];
  bind_tangent(call, tangent);
  CHECK_OK(neml2_call_run(call, N));
  bind_tangent(call, other_order);
  CHECK_OK(neml2_call_set_block_order(call, NEML2_INPUT_FIRST));
  CHECK_OK(neml2_call_run(call, N));
  bind_tangent(call, NULL);
  difference(call, &b, differences);

  for (int p = 0; p < N; ++p)
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 6; ++j) transpose[36 * p + 6 * j + i] = tangent[36 * p + 6 * i + j];
  CHECK_SAME(36 * N, other_order, transpose);
  for (int64_t o = 0; o < 36 * N; o += 36) {
    const double norm = distance(tangent + o, zero);
    CHECK(distance(tangent + o, differences + o) < 1e-6 * norm);
    CHECK(distance(tangent + o, transpose + o) > 1e-4 * norm);
  }
  print_points("tangent", N, 36, 36, tangent);

  neml2_call_free(&call);
  viscoplastic_free(&b);
  neml2_model_free(&model);
  return scenario_end();
}
