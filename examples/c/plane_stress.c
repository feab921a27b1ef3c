/*
 * A four-node element in plane stress, of any law with a history that neml2-capi runs: what a membrane element does.
 *
 *     plane_stress ARTIFACT
 *
 * A quadrilateral is stretched along x in steps by its four corners, and free to contract except at one corner. Each line has
 * the step, the residual forces after each Newton iteration, and the stress xx of the last Gauss point. All four points
 * have the stress of a truss of the law: it is a patch test.
 *
 * Effects of the hypothesis: strain and stress have 3 components, the tangent is 3 x 3 and condensed, and the strain
 * through the thickness is one of the states that a host keeps from step to step.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "neml2_capi.h"

enum { NODES = 4, DOFS = 2 * NODES, POINTS = 4, STEPS = 5, MOST_STATES = 8, MOST_SIZE = 6, ITERATIONS = 12 };

static const double node[NODES][2] = {{0, 0}, {1, 0.1}, {1.2, 1}, {-0.1, 0.9}};
static const int held[DOFS] = {1, 1, 1, 0, 1, 0, 1, 0}; /* all displacements along x, and one along y */
static const double root2 = 1.4142135623730951;

/* The states of the points, as the model lists them: `x` now, and `x~1` before. */
typedef struct {
  int count;
  double now[MOST_STATES][POINTS][MOST_SIZE], old[MOST_STATES][POINTS][MOST_SIZE];
  double strain[POINTS][3], old_strain[POINTS][3], tangent[POINTS][3][3];
  double time, old_time;
  int stress; /* which of the states */
} points;

/* Binds each output, and each history to its own old values. */
static int32_t bind(neml2_call *call, const neml2_model *model, points *p) {
  int64_t outputs = 0, histories = 0;
  int32_t status = neml2_model_variable_count(&outputs, model, NEML2_OUTPUT);
  if (status == NEML2_OK) status = neml2_model_history_count(&histories, model);
  for (int64_t i = 0; i < outputs && i < MOST_STATES && status == NEML2_OK; ++i) {
    neml2_variable_info info = {.size = sizeof info};
    status = neml2_model_variable_inspect(&info, model, NEML2_OUTPUT, i);
    if (status != NEML2_OK) break;
    if (strcmp(info.name, "stress") == 0) p->stress = (int)i;
    status = neml2_call_bind(call, NEML2_OUTPUT, info.name, p->now[i], NEML2_FLOAT64, MOST_SIZE);
    p->count = (int)i + 1;
  }
  for (int64_t i = 0; i < histories && status == NEML2_OK; ++i) {
    neml2_history_info history = {.size = sizeof history};
    neml2_variable_info info = {.size = sizeof info};
    status = neml2_model_history_inspect(&history, model, i);
    if (status == NEML2_OK) status = neml2_model_variable_inspect(&info, model, NEML2_INPUT, history.input);
    if (status == NEML2_OK && history.output >= 0)
      status = neml2_call_bind(call, NEML2_INPUT, info.name, p->old[history.output], NEML2_FLOAT64, MOST_SIZE);
  }
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain", p->strain, NEML2_FLOAT64, 3);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain~1", p->old_strain, NEML2_FLOAT64, 3);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "t", &p->time, NEML2_FLOAT64, 0);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "t~1", &p->old_time, NEML2_FLOAT64, 0);
  if (status == NEML2_OK)
    status = neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", p->tangent, NEML2_FLOAT64, 9);
  return status;
}

/* The strain-displacement matrix of a Gauss point, rows xx, yy, sqrt(2) xy, and the weight of the point. */
static double strain_matrix(int point, double b[3][DOFS]) {
  const double at = 1 / sqrt(3.0), xi = point % 2 ? at : -at, eta = point / 2 ? at : -at;
  const double corner[NODES][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
  double local[NODES][2], jacobian[2][2] = {{0}};
  for (int a = 0; a < NODES; ++a) {
    local[a][0] = corner[a][0] * (1 + corner[a][1] * eta) / 4;
    local[a][1] = corner[a][1] * (1 + corner[a][0] * xi) / 4;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) jacobian[i][j] += local[a][i] * node[a][j];
  }
  const double det = jacobian[0][0] * jacobian[1][1] - jacobian[0][1] * jacobian[1][0];
  for (int a = 0; a < NODES; ++a) {
    const double dx = (jacobian[1][1] * local[a][0] - jacobian[0][1] * local[a][1]) / det;
    const double dy = (jacobian[0][0] * local[a][1] - jacobian[1][0] * local[a][0]) / det;
    b[0][2 * a] = dx;
    b[0][2 * a + 1] = 0;
    b[1][2 * a] = 0;
    b[1][2 * a + 1] = dy;
    b[2][2 * a] = dy / root2;
    b[2][2 * a + 1] = dx / root2;
  }
  return det;
}

/* Forces and stiffness of the element at displacements `u`. */
static int32_t element(neml2_call *call, points *p, const double u[DOFS], double f[DOFS], double k[DOFS][DOFS]) {
  double b[POINTS][3][DOFS], weight[POINTS];
  memset(f, 0, DOFS * sizeof f[0]);
  memset(k, 0, DOFS * sizeof k[0]);
  for (int g = 0; g < POINTS; ++g) {
    weight[g] = strain_matrix(g, b[g]);
    for (int i = 0; i < 3; ++i) {
      p->strain[g][i] = 0;
      for (int d = 0; d < DOFS; ++d) p->strain[g][i] += b[g][i][d] * u[d];
    }
  }
  const int32_t status = neml2_call_run(call, POINTS);
  for (int g = 0; g < POINTS && status == NEML2_OK; ++g)
    for (int i = 0; i < 3; ++i)
      for (int d = 0; d < DOFS; ++d) {
        f[d] += weight[g] * b[g][i][d] * p->now[p->stress][g][i];
        for (int j = 0; j < 3; ++j)
          for (int e = 0; e < DOFS; ++e) k[d][e] += weight[g] * b[g][i][d] * p->tangent[g][i][j] * b[g][j][e];
      }
  return status;
}

/* Solves k x = f without the rows and columns that are held; no pivoting, for k is positive definite there. */
static void solve(double k[DOFS][DOFS], double f[DOFS]) {
  for (int i = 0; i < DOFS; ++i) {
    if (held[i]) {
      for (int j = 0; j < DOFS; ++j) k[i][j] = k[j][i] = i == j;
      f[i] = 0;
    }
  }
  for (int i = 0; i < DOFS; ++i)
    for (int r = i + 1; r < DOFS; ++r) {
      const double factor = k[r][i] / k[i][i];
      for (int c = i; c < DOFS; ++c) k[r][c] -= factor * k[i][c];
      f[r] -= factor * f[i];
    }
  for (int i = DOFS; i-- > 0;) {
    for (int c = i + 1; c < DOFS; ++c) f[i] -= k[i][c] * f[c];
    f[i] /= k[i][i];
  }
}

static int32_t stretch(neml2_call *call, points *p) {
  double u[DOFS] = {0}, f[DOFS], k[DOFS][DOFS];
  for (int step = 1; step <= STEPS; ++step) {
    p->time = step;
    for (int d = 0; d < DOFS; ++d) u[d] += d % 2 ? 0 : 2e-3 * node[d / 2][0];
    printf("step %d residuals", step);
    for (int iteration = 0; iteration < ITERATIONS; ++iteration) {
      const int32_t status = element(call, p, u, f, k);
      if (status != NEML2_OK) return status;
      double norm = 0, greatest = 0;
      for (int d = 0; d < DOFS; ++d)
        if (held[d])
          greatest = fmax(greatest, fabs(f[d]));
        else
          norm = fmax(norm, fabs(f[d]));
      printf(" %.3e", norm);
      if (norm <= 1e-9 * greatest) break;
      solve(k, f);
      for (int d = 0; d < DOFS; ++d) u[d] -= f[d];
    }
    printf(" stress %.12e\n", p->now[p->stress][POINTS - 1][0]);
    memcpy(p->old, p->now, sizeof p->old);
    memcpy(p->old_strain, p->strain, sizeof p->old_strain);
    p->old_time = p->time;
  }
  return NEML2_OK;
}

int main(int argc, char **argv) {
  static points p; /* all histories start from zero */
  neml2_source source = {.size = sizeof source, .path = argc > 1 ? argv[1] : "", .hypothesis = NEML2_PLANE_STRESS};
  neml2_model *model = NULL;
  neml2_call *call = NULL;

  int32_t status = neml2_model_open(&model, &source);
  if (status == NEML2_OK) status = neml2_call_create(&call, model);
  if (status == NEML2_OK) status = bind(call, model, &p);
  if (status == NEML2_OK) status = stretch(call, &p);
  if (status != NEML2_OK) {
    char message[1024];
    neml2_error_message(message, sizeof message, NULL);
    fprintf(stderr, "%s\n", message);
  }
  neml2_call_free(&call);
  neml2_model_free(&model);
  return status == NEML2_OK ? 0 : 1;
}
