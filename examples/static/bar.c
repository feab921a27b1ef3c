/* A finite-element program whose law is linked in: a tapered bar of Chaboche steel is pulled and pushed back, by trilinear
 * hexahedra and Newton's method. It opens no file.
 *
 *     bar               the law that neml2-capi static wrote as chaboche.c
 *     bar ARTIFACT      the same law by its folder, to compare with
 */
#include <math.h>
#include <neml2_capi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

neml2_source neml2_source_of_chaboche(void);

enum { NX = 4, NY = 2, NZ = 2, NODES = (NX + 1) * (NY + 1) * (NZ + 1), ELEMENTS = NX * NY * NZ };
enum { FREEDOMS = 3 * NODES, POINTS = 8 * ELEMENTS, STEPS = 8 };

#define LENGTH 3.0

static double nodes[NODES][3], matrix[FREEDOMS][FREEDOMS], forces[FREEDOMS];
static int corners[ELEMENTS][8];
/* Strain operator of each point in Mandel's notation, and its volume. */
static double operators[POINTS][6][24], volumes[POINTS];

/* Arrays of the law, bound as they are: inputs, the tangent, and each state beside its old value. */
static double strain[POINTS][6], strain_old[POINTS][6], tangent[POINTS][6][6], t, t_old;

typedef struct State {
  const char *name, *old;
  double now[POINTS][6], before[POINTS][6]; /* a scalar takes the first of a row */
} State;
static State states[] = {{.name = "stress", .old = "stress~1"},
                         {.name = "equivalent_plastic_strain", .old = "equivalent_plastic_strain~1"},
                         {.name = "X1", .old = "X1~1"},
                         {.name = "X2", .old = "X2~1"}};
enum { STATE_COUNT = sizeof states / sizeof *states };

static void require(int32_t status) {
  if (status == NEML2_OK) return;
  char message[2000];
  neml2_error_message(message, sizeof message, NULL);
  fprintf(stderr, "%s\n", message);
  exit(1);
}

static int node_at(int x, int y, int z) { return (x * (NY + 1) + y) * (NZ + 1) + z; }

static void make_mesh(void) {
  for (int x = 0; x <= NX; ++x)
    for (int y = 0; y <= NY; ++y)
      for (int z = 0; z <= NZ; ++z) {
        const double width = 1 - 0.4 * x / NX; /* it tapers */
        double *node = nodes[node_at(x, y, z)];
        node[0] = LENGTH * x / NX, node[1] = width * y / NY, node[2] = width * z / NZ;
      }
  int element = 0;
  for (int x = 0; x < NX; ++x)
    for (int y = 0; y < NY; ++y)
      for (int z = 0; z < NZ; ++z, ++element)
        for (int corner = 0; corner < 8; ++corner)
          corners[element][corner] = node_at(x + (corner >> 2), y + (corner >> 1 & 1), z + (corner & 1));
}

/* The strain operator of a Gauss point, (6, 24), by the derivatives of the shape functions. */
static void make_operator(int element, int point) {
  const double at = 0.5773502691896258, gauss[3] = {point & 4 ? at : -at, point & 2 ? at : -at, point & 1 ? at : -at};
  double natural[8][3], jacobian[3][3] = {{0}};
  for (int corner = 0; corner < 8; ++corner) {
    const double sign[3] = {corner & 4 ? 1 : -1, corner & 2 ? 1 : -1, corner & 1 ? 1 : -1};
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      natural[corner][i] = 0.125 * sign[i] * (1 + sign[j] * gauss[j]) * (1 + sign[k] * gauss[k]);
      for (int l = 0; l < 3; ++l) jacobian[i][l] += natural[corner][i] * nodes[corners[element][corner]][l];
    }
  }
  double inverse[3][3], determinant = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
      inverse[j][i] = jacobian[a][c] * jacobian[b][d] - jacobian[a][d] * jacobian[b][c];
    }
  for (int j = 0; j < 3; ++j) determinant += jacobian[0][j] * inverse[j][0];
  const double root = sqrt(0.5);
  double(*b)[24] = operators[8 * element + point];
  volumes[8 * element + point] = determinant;
  for (int corner = 0; corner < 8; ++corner) {
    double d[3] = {0};
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) d[i] += inverse[i][j] * natural[corner][j] / determinant;
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, k = (i + 2) % 3, column = 3 * corner;
      b[i][column + i] = d[i];
      b[3 + i][column + j] = root * d[k]; /* xx, yy, zz, yz, xz, xy; shear times the root of 2 */
      b[3 + i][column + k] = root * d[j];
    }
  }
}

static void set_strains(const double *displacements) {
  for (int point = 0; point < POINTS; ++point)
    for (int i = 0; i < 6; ++i) {
      double sum = 0;
      for (int j = 0; j < 24; ++j) sum += operators[point][i][j] * displacements[3 * corners[point / 8][j / 3] + j % 3];
      strain[point][i] = sum;
    }
}

/* Assemble the stiffness and the internal forces. */
static void assemble(void) {
  memset(matrix, 0, sizeof matrix);
  memset(forces, 0, sizeof forces);
  for (int point = 0; point < POINTS; ++point) {
    const double(*b)[24] = (const double(*)[24])operators[point];
    const double *stress = states[0].now[point];
    double product[6][24] = {{0}};
    for (int i = 0; i < 6; ++i)
      for (int k = 0; k < 6; ++k)
        for (int j = 0; j < 24; ++j) product[i][j] += volumes[point] * tangent[point][i][k] * b[k][j];
    for (int i = 0; i < 24; ++i) {
      const int row = 3 * corners[point / 8][i / 3] + i % 3;
      for (int k = 0; k < 6; ++k) {
        forces[row] += volumes[point] * b[k][i] * stress[k];
        for (int j = 0; j < 24; ++j) matrix[row][3 * corners[point / 8][j / 3] + j % 3] += b[k][i] * product[k][j];
      }
    }
  }
}

/* Is the displacement given? The faces x, y, z = 0 glide, and the far end is pulled. */
static int is_given(int freedom) {
  const double *node = nodes[freedom / 3];
  return node[freedom % 3] == 0 || (freedom % 3 == 0 && node[0] == LENGTH);
}

/* Solve matrix x = right by Gaussian elimination; `right` becomes x. */
static void solve(double *right) {
  for (int i = 0; i < FREEDOMS; ++i)
    for (int j = i + 1; j < FREEDOMS; ++j) {
      const double factor = matrix[j][i] / matrix[i][i];
      if (factor == 0) continue;
      for (int k = i; k < FREEDOMS; ++k) matrix[j][k] -= factor * matrix[i][k];
      right[j] -= factor * right[i];
    }
  for (int i = FREEDOMS - 1; i >= 0; --i) {
    for (int k = i + 1; k < FREEDOMS; ++k) right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
}

static void bind_all(neml2_call *call) {
  const int32_t real = NEML2_FLOAT64;
  require(neml2_call_bind(call, NEML2_INPUT, "strain", strain, real, 6));
  require(neml2_call_bind(call, NEML2_INPUT, "strain~1", strain_old, real, 6));
  require(neml2_call_bind(call, NEML2_INPUT, "t", &t, real, 0));
  require(neml2_call_bind(call, NEML2_INPUT, "t~1", &t_old, real, 0));
  for (State *state = states; state < states + STATE_COUNT; ++state) {
    require(neml2_call_bind(call, NEML2_INPUT, state->old, state->before, real, 6));
    require(neml2_call_bind(call, NEML2_OUTPUT, state->name, state->now, real, 6));
  }
  require(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", tangent, real, 36));
}

static void commit(void) {
  memcpy(strain_old, strain, sizeof strain);
  for (State *state = states; state < states + STATE_COUNT; ++state)
    memcpy(state->before, state->now, sizeof state->now);
  t_old = t;
}

int main(int argc, char **argv) {
  neml2_source source = neml2_source_of_chaboche();
  if (argc > 1) {
    const neml2_source folder = {.size = sizeof folder, .path = argv[1]};
    source = folder;
  }
  neml2_model *model = NULL;
  neml2_call *call = NULL;
  require(neml2_model_open(&model, &source));
  require(neml2_call_create(&call, model));
  bind_all(call);
  make_mesh();
  for (int point = 0; point < POINTS; ++point) make_operator(point / 8, point % 8);

  static double displacements[FREEDOMS], step[FREEDOMS];
  printf("# time/s  end/mm    reaction/N              iterations  residuals\n");
  for (int number = 1; number <= STEPS; ++number) {
    const double end = 0.03 * (number <= STEPS / 2 ? number : STEPS - number) / (STEPS / 2);
    t = number;
    double reaction = 0, residual = 1, history[30];
    int iteration = 0;
    for (; iteration < 30 && residual > 1e-9; ++iteration) {
      set_strains(displacements);
      require(neml2_call_run(call, POINTS));
      assemble();
      double largest = 1;
      residual = reaction = 0;
      for (int i = 0; i < FREEDOMS; ++i) {
        const int is_pulled = i % 3 == 0 && nodes[i / 3][0] == LENGTH;
        if (is_given(i)) {
          const double wanted = is_pulled ? end : 0;
          if (is_pulled) reaction += forces[i];
          if (fabs(forces[i]) > largest) largest = fabs(forces[i]);
          for (int j = 0; j < FREEDOMS; ++j) matrix[i][j] = i == j;
          step[i] = wanted - displacements[i];
        } else {
          step[i] = -forces[i];
          if (fabs(forces[i]) > residual) residual = fabs(forces[i]);
        }
      }
      residual /= largest;
      history[iteration] = residual;
      if (iteration == 0) residual = 1; /* the end has not moved yet */
      solve(step);
      for (int i = 0; i < FREEDOMS; ++i) displacements[i] += step[i];
    }
    if (residual > 1e-9) return fprintf(stderr, "step %d did not converge\n", number), 1;
    printf("%6.1f  %8.5f  %22.17g  %10d ", t, end, reaction, iteration);
    for (int i = 1; i < iteration; ++i) printf(" %.0e", history[i]);
    printf("\n");
    commit();
  }
  neml2_call_free(&call);
  neml2_model_free(&model);
  return 0;
}
