/* The derivatives of implicit models, through calls and tensors, agree with differences and with each other.
 *   test_tangents ISOTROPIC_HARDENING RADIAL_RETURN CRYSTAL
 * one implicit segment with parameters; three segments; an implicit one and a forward one. Without arguments there is
 * nothing to test: 77 says that it was skipped. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"
#include "materials.h"

enum { N = 5, MOST = 8 }; /* points; inputs and outputs */

/* The values of an input in some state; a force is another one at each point. */
typedef struct {
  const char *name;
  int force;
  double values[12];
} given;

static const given isotropic_hardening[] = {
    {"strain", 1, {1.9e-3, -5.7e-4, -4.8e-4, 6.7e-4, -3.8e-4, 2.9e-4}},
    {"strain~1", 0, {1.2e-3, -3.5e-4, -2.9e-4, 4.1e-4, -2.4e-4, 1.8e-4}},
    {"t", 0, {2}},
    {"t~1", 0, {1}},
    {"equivalent_plastic_strain~1", 0, {2.6e-4}},
    {"stress~1", 0, {205, 27, 33, 48, -27, 21}},
};
static const given radial_return[] = {
    {"total_strain", 1, {1.9e-3, -5.7e-4, -4.8e-4, 6.7e-4, -3.8e-4, 2.9e-4}},
    {"plastic_strain~1", 0, {2.4e-4, -1.3e-4, -1.1e-4, 9.9e-5, -5.7e-5, 4.3e-5}},
    {"equivalent_plastic_strain~1", 0, {2.6e-4}},
    {"kinematic_plastic_strain~1", 0, {2.1e-4, -1.1e-4, -1.0e-4, 8.1e-5, -4.9e-5, 5.3e-5}},
    {"gamma~1", 0, {3.2e-4}},
    {"t", 0, {2}},
    {"t~1", 0, {1}},
};
static const given crystal[] = {
    {"deformation_rate", 1, {0.1, -0.05, -0.05, 0.02, 0.004, -0.01}},
    {"vorticity", 0, {0.1, -0.05, -0.05}},
    {"dislocation_density~1", 0, {9.97, 10.1, 10.2, 10.3, 10.3, 10.5, 10.6, 10.7, 10.8, 10.9, 11.0, 11.1}},
    {"t", 0, {0.03}},
    {"t~1", 0, {0.02}},
    {"elastic_strain~1", 0, {9.3e-4, -5.1e-4, -4.2e-4, 1.0e-4, -1.6e-5, -1.1e-4}},
    {"orientation~1", 0, {0.2, -0.1, -0.05}},
    {"t~2", 0, {0.01}},
};

/* Some points of a model. */
typedef struct {
  neml2_model *model;
  int64_t ninputs, noutputs;
  int64_t input_size[MOST], output_size[MOST];
  const char *input_name[MOST], *output_name[MOST];
  double *inputs[MOST];
} points;

static int64_t size_of(const neml2_model *model, int32_t kind, int64_t index) {
  int64_t ndim = 0, size = 1;
  const int64_t *shape = NULL;
  ndim = variable_info(model, kind, index).ndim;
  shape = variable_info(model, kind, index).shape;
  for (int64_t i = 0; i < ndim; ++i) size *= shape[i];
  return size;
}

static points points_of(const char *root, const given *state) {
  points p = {load(root), 0, 0, {0}, {0}, {NULL}, {NULL}, {NULL}};
  REQUIRE_OK(neml2_model_option_set_number(p.model, "atol", 1e-12));
  REQUIRE_OK(neml2_model_option_set_number(p.model, "rtol", 1e-14));
  REQUIRE_OK(neml2_model_variable_count(&p.ninputs, p.model, NEML2_INPUT));
  REQUIRE_OK(neml2_model_variable_count(&p.noutputs, p.model, NEML2_OUTPUT));
  for (int64_t k = 0; k < p.noutputs; ++k) {
    p.output_name[k] = variable_info(p.model, NEML2_OUTPUT, k).name;
    p.output_size[k] = size_of(p.model, NEML2_OUTPUT, k);
  }
  for (int64_t k = 0; k < p.ninputs; ++k) {
    p.input_name[k] = variable_info(p.model, NEML2_INPUT, k).name;
    const int64_t size = p.input_size[k] = size_of(p.model, NEML2_INPUT, k);
    const given *own = state;
    while (strcmp(own->name, p.input_name[k]) != 0) ++own;
    p.inputs[k] = doubles(N * size);
    for (int64_t i = 0; i < N * size; ++i)
      p.inputs[k][i] = own->values[i % size] * (own->force ? 1 + 0.1 * (double)(i / size) : 1);
  }
  return p;
}

static void points_free(points *p) {
  for (int64_t k = 0; k < p->ninputs; ++k) free(p->inputs[k]);
  neml2_model_free(&p->model);
}

/* All inputs are bound. */
static neml2_call *call_over(const points *p) {
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, p->model));
  for (int64_t k = 0; k < p->ninputs; ++k)
    CHECK_OK(neml2_call_bind(call, NEML2_INPUT, p->input_name[k], p->inputs[k], NEML2_FLOAT64, p->input_size[k]));
  return call;
}

/* A direction at each point, of the magnitude of `like`, so that no term of a product drowns. */
static double *direction_like(const double *like, int64_t size, double phase) {
  double *direction = doubles(N * size), scale = 0;
  for (int64_t i = 0; i < size; ++i) scale = fmax(scale, fabs(like[i]));
  for (int64_t i = 0; i < N * size; ++i) direction[i] = scale * sin(phase + 1.3 * (double)i);
  return direction;
}

/* A derivative is [output][input] and, in the other order, [input][output]: asked of one that is not symmetric. */
static void blocks_have_two_orders(points *p, const char *output, const char *variable, double tolerance) {
  int64_t o = -1, v = -1;
  CHECK_OK(neml2_model_variable_find(&o, p->model, NEML2_OUTPUT, output));
  CHECK_OK(neml2_model_variable_find(&v, p->model, NEML2_INPUT, variable));
  const int64_t rows = p->output_size[o], columns = p->input_size[v], size = rows * columns;
  double *block = doubles(N * size), *transpose = doubles(N * size), *difference = doubles(N * size);
  double *plus = doubles(N * rows), *minus = doubles(N * rows), asymmetry = 0, scale = 0;
  neml2_call *call = call_over(p);
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, output, variable, block, NEML2_FLOAT64, size));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, output, variable, transpose, NEML2_FLOAT64, size));
  CHECK_OK(neml2_call_block_order_set(call, NEML2_INPUT_FIRST));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_OK(neml2_call_block_order_set(call, NEML2_OUTPUT_FIRST));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, output, variable, NULL, NEML2_FLOAT64, size));
  for (int64_t q = 0; q < N; ++q)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const double value = block[q * size + i * columns + j];
        CHECK(transpose[q * size + j * rows + i] == value);
        scale = fmax(scale, fabs(value));
        if (rows == columns) asymmetry = fmax(asymmetry, fabs(value - block[q * size + j * columns + i]));
      }
  if (rows == columns) CHECK(asymmetry > 10 * tolerance * scale);

  double h = 0;
  for (int64_t j = 0; j < columns; ++j) h = fmax(h, 1e-5 * fabs(p->inputs[v][j]));
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t q = 0; q < N; ++q) p->inputs[v][q * columns + j] += h;
    CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, output, plus, NEML2_FLOAT64, rows));
    CHECK_OK(neml2_call_run(call, N));
    for (int64_t q = 0; q < N; ++q) p->inputs[v][q * columns + j] -= 2 * h;
    CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, output, minus, NEML2_FLOAT64, rows));
    CHECK_OK(neml2_call_run(call, N));
    for (int64_t q = 0; q < N; ++q) {
      p->inputs[v][q * columns + j] += h;
      for (int64_t i = 0; i < rows; ++i)
        difference[q * size + i * columns + j] = (plus[q * rows + i] - minus[q * rows + i]) / (2 * h);
    }
  }
  CHECK_NEAR(N * size, block, difference, tolerance);
  neml2_call_free(&call);
  free(block);
  free(transpose);
  free(difference);
  free(plus);
  free(minus);
}

/* Arrays for all derivatives of some points with respect to inputs. */
typedef struct {
  int64_t nblocks;
  double *tangents[MOST], *cotangents[MOST], *jvps[MOST], *adjoints[MOST], *blocks[MOST * MOST];
} arrays;

static arrays arrays_for(const points *p) {
  arrays a = {0, {NULL}, {NULL}, {NULL}, {NULL}, {NULL}};
  REQUIRE_OK(neml2_model_derivative_count(&a.nblocks, p->model, NEML2_INPUT));
  for (int64_t k = 0; k < p->ninputs; ++k) {
    a.tangents[k] = direction_like(p->inputs[k], p->input_size[k], 1 + (double)k);
    a.adjoints[k] = doubles(N * p->input_size[k]);
  }
  for (int64_t k = 0; k < p->noutputs; ++k) {
    a.cotangents[k] = doubles(N * p->output_size[k]);
    for (int64_t i = 0; i < N * p->output_size[k]; ++i) a.cotangents[k][i] = sin(0.3 + 1.7 * (double)(i + k));
    a.jvps[k] = doubles(N * p->output_size[k]);
  }
  for (int64_t d = 0; d < a.nblocks; ++d) {
    int64_t o = 0, v = 0;
    o = derivative_info(p->model, NEML2_INPUT, d).output;
    v = derivative_info(p->model, NEML2_INPUT, d).variable;
    a.blocks[d] = doubles(N * p->output_size[o] * p->input_size[v]);
  }
  return a;
}

static void arrays_free(arrays *a) {
  for (int k = 0; k < MOST; ++k) {
    free(a->tangents[k]);
    free(a->cotangents[k]);
    free(a->jvps[k]);
    free(a->adjoints[k]);
  }
  for (int64_t d = 0; d < a->nblocks; ++d) free(a->blocks[d]);
}

static void bind_directions(neml2_call *call, const points *p, const arrays *a) {
  for (int64_t k = 0; k < p->ninputs; ++k)
    CHECK_OK(neml2_call_bind(call, NEML2_TANGENT, p->input_name[k], a->tangents[k], NEML2_FLOAT64, p->input_size[k]));
  for (int64_t k = 0; k < p->noutputs; ++k)
    CHECK_OK(
        neml2_call_bind(call, NEML2_COTANGENT, p->output_name[k], a->cotangents[k], NEML2_FLOAT64, p->output_size[k]));
}

static void bind_jvps(neml2_call *call, const points *p, const arrays *a) {
  for (int64_t k = 0; k < p->noutputs; ++k)
    CHECK_OK(neml2_call_bind(call, NEML2_JVP, p->output_name[k], a->jvps[k], NEML2_FLOAT64, p->output_size[k]));
}

/* Of each point, or summed over all. */
static void bind_adjoints(neml2_call *call, const points *p, const arrays *a, int summed) {
  for (int64_t k = 0; k < p->ninputs; ++k)
    CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, p->input_name[k], a->adjoints[k], NEML2_FLOAT64,
                             summed ? 0 : p->input_size[k]));
}

static void bind_blocks(neml2_call *call, const points *p, const arrays *a) {
  for (int64_t d = 0; d < a->nblocks; ++d) {
    int64_t o = 0, v = 0;
    o = derivative_info(p->model, NEML2_INPUT, d).output;
    v = derivative_info(p->model, NEML2_INPUT, d).variable;
    CHECK_OK(neml2_call_bind_derivative(call, NEML2_INPUT, p->output_name[o], p->input_name[v], a->blocks[d],
                                        NEML2_FLOAT64, p->output_size[o] * p->input_size[v]));
  }
}

/* jvp(v) = J v and vjp(w) = w J, over all inputs and outputs, in one run; alone, each has the same bits. */
static void products_are_those_of_the_blocks(const points *p) {
  arrays all = arrays_for(p), alone = arrays_for(p), expected = arrays_for(p);
  neml2_call *call = call_over(p);
  CHECK(all.nblocks == p->ninputs * p->noutputs);
  bind_directions(call, p, &all);
  bind_jvps(call, p, &all);
  bind_adjoints(call, p, &all, 0);
  bind_blocks(call, p, &all);
  CHECK_OK(neml2_call_run(call, N));
  neml2_call_free(&call);
  for (int kind = 0; kind < 3; ++kind) {
    call = call_over(p);
    bind_directions(call, p, &all);
    if (kind == 0) bind_jvps(call, p, &alone);
    if (kind == 1) bind_adjoints(call, p, &alone, 0);
    if (kind == 2) bind_blocks(call, p, &alone);
    CHECK_OK(neml2_call_run(call, N));
    neml2_call_free(&call);
  }

  for (int64_t d = 0; d < all.nblocks; ++d) {
    int64_t o = 0, v = 0;
    o = derivative_info(p->model, NEML2_INPUT, d).output;
    v = derivative_info(p->model, NEML2_INPUT, d).variable;
    const int64_t rows = p->output_size[o], columns = p->input_size[v];
    for (int64_t q = 0; q < N; ++q)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const double value = all.blocks[d][(q * rows + i) * columns + j];
          expected.jvps[o][q * rows + i] += value * all.tangents[v][q * columns + j];
          expected.adjoints[v][q * columns + j] += value * all.cotangents[o][q * rows + i];
        }
    CHECK_SAME(N * rows * columns, alone.blocks[d], all.blocks[d]);
  }
  for (int64_t k = 0; k < p->noutputs; ++k) {
    CHECK_NEAR(N * p->output_size[k], all.jvps[k], expected.jvps[k], 1e-10);
    /* Beside blocks it is their product, alone it costs one more Newton step. */
    CHECK_NEAR(N * p->output_size[k], alone.jvps[k], all.jvps[k], 1e-10);
  }
  for (int64_t k = 0; k < p->ninputs; ++k) {
    CHECK_NEAR(N * p->input_size[k], all.adjoints[k], expected.adjoints[k], 1e-10);
    CHECK_SAME(N * p->input_size[k], alone.adjoints[k], all.adjoints[k]);
  }
  arrays_free(&all);
  arrays_free(&alone);
  arrays_free(&expected);
}

/* What is written of `size` numbers per point: the numbers of point BAD stay as they were, the others equal `good`. */
enum { BAD = 2 };
static void check_untouched(const double *values, const double *good, int64_t size) {
  for (int64_t q = 0; q < N; ++q)
    for (int64_t i = q * size; i < (q + 1) * size; ++i) CHECK(q == BAD ? values[i] == -1 : values[i] == good[i]);
}

static void fill(double *values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = -1;
}

/* A point that fails leaves everything that is its own untouched, and has no part in sums. */
static void failed_points_are_left_alone(const points *p) {
  arrays good = arrays_for(p), a = arrays_for(p);
  double *kept = p->inputs[0], *spoilt = doubles(N * p->input_size[0]);
  neml2_call *call = call_over(p);
  bind_directions(call, p, &good);
  bind_jvps(call, p, &good);
  bind_adjoints(call, p, &good, 0);
  bind_blocks(call, p, &good);
  CHECK_OK(neml2_call_run(call, N));

  for (int64_t k = 0; k < p->noutputs; ++k) fill(a.jvps[k], N * p->output_size[k]);
  for (int64_t k = 0; k < p->ninputs; ++k) fill(a.adjoints[k], N * p->input_size[k]);
  memcpy(spoilt, kept, (size_t)(N * p->input_size[0]) * sizeof *spoilt);
  spoilt[BAD * p->input_size[0]] = 1e200;
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, p->input_name[0], spoilt, NEML2_FLOAT64, p->input_size[0]));
  bind_jvps(call, p, &a);
  bind_adjoints(call, p, &a, 0);
  for (int64_t d = 0; d < a.nblocks; ++d) {
    int64_t o = 0, v = 0;
    o = derivative_info(p->model, NEML2_INPUT, d).output;
    v = derivative_info(p->model, NEML2_INPUT, d).variable;
    fill(a.blocks[d], N * p->output_size[o] * p->input_size[v]);
  }
  bind_blocks(call, p, &a);
  CHECK(neml2_call_run(call, N) >= NEML2_NOT_CONVERGED);
  for (int64_t k = 0; k < p->noutputs; ++k) check_untouched(a.jvps[k], good.jvps[k], p->output_size[k]);
  for (int64_t k = 0; k < p->ninputs; ++k) check_untouched(a.adjoints[k], good.adjoints[k], p->input_size[k]);
  for (int64_t d = 0; d < a.nblocks; ++d) {
    int64_t o = 0, v = 0;
    o = derivative_info(p->model, NEML2_INPUT, d).output;
    v = derivative_info(p->model, NEML2_INPUT, d).variable;
    check_untouched(a.blocks[d], good.blocks[d], p->output_size[o] * p->input_size[v]);
  }

  bind_adjoints(call, p, &a, 1);
  CHECK(neml2_call_run(call, N) >= NEML2_NOT_CONVERGED);
  for (int64_t k = 0; k < p->ninputs; ++k) {
    const int64_t size = p->input_size[k];
    double sum[12] = {0};
    for (int64_t i = 0; i < N * size; ++i)
      if (i / size != BAD) sum[i % size] += good.adjoints[k][i];
    CHECK_SAME(size, a.adjoints[k], sum);
  }
  neml2_call_free(&call);
  arrays_free(&good);
  arrays_free(&a);
  free(spoilt);
}

/* The derivatives with respect to a parameter, one value for all points and one per point; `name` may be short. */
static void parameters_have_derivatives(const points *p, const char *output, const char *name, double value) {
  int64_t o = -1, v = -1, count = -1, block_index = -1;
  const int64_t n = N;
  CHECK_OK(neml2_model_variable_find(&o, p->model, NEML2_OUTPUT, output));
  CHECK_OK(neml2_model_variable_find(&v, p->model, NEML2_PARAMETER, name));
  const int64_t size = p->output_size[o];
  double *block = doubles(N * size), *plus = doubles(N * size), *minus = doubles(N * size);
  double *cotangent = doubles(N * size), adjoint[N], total = 0, values[N], up[N], down[N];
  for (int64_t i = 0; i < N * size; ++i) cotangent[i] = cos(0.9 * (double)i);
  for (int q = 0; q < N; ++q) {
    values[q] = value * (1 + 0.02 * q);
    up[q] = values[q] * (1 + 1e-5);
    down[q] = values[q] * (1 - 1e-5);
  }
  neml2_call *call = call_over(p);
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, name, up, NEML2_FLOAT64, 1));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, output, plus, NEML2_FLOAT64, size));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, name, down, NEML2_FLOAT64, 1));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, output, minus, NEML2_FLOAT64, size));
  CHECK_OK(neml2_call_run(call, N));
  for (int64_t i = 0; i < N * size; ++i) plus[i] = (plus[i] - minus[i]) / (2e-5 * values[i / size]);

  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, name, values, NEML2_FLOAT64, 1));
  CHECK_OK(neml2_call_bind_derivative(call, NEML2_PARAMETER, output, name, block, NEML2_FLOAT64, size));
  CHECK_OK(neml2_call_bind(call, NEML2_COTANGENT, output, cotangent, NEML2_FLOAT64, size));
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER_ADJOINT, name, adjoint, NEML2_FLOAT64, 1));
  CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(N * size, block, plus, 1e-6);
  double products[N] = {0}, sum = 0;
  for (int64_t i = 0; i < N * size; ++i) products[i / size] += cotangent[i] * block[i];
  CHECK_NEAR(N, adjoint, products, 1e-10);
  CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER_ADJOINT, name, &total, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_run(call, N));
  for (int q = 0; q < N; ++q) sum += adjoint[q];
  CHECK(total == sum);

  /* The same through tensors; an adjoint has the shape of what it belongs to. */
  neml2_tensor *inputs[MOST] = {NULL}, *parameters[MOST] = {NULL}, *cotangents[MOST] = {NULL};
  neml2_tensor *blocks[MOST * MOST] = {NULL}, *adjoints[MOST] = {NULL};
  for (int64_t k = 0; k < p->ninputs; ++k) {
    const int64_t shape[2] = {N, p->input_size[k]};
    int64_t ndim = 0;
    ndim = variable_info(p->model, NEML2_INPUT, k).ndim;
    inputs[k] = tensor_over(p->inputs[k], ndim + 1, shape);
  }
  const int64_t shape[2] = {N, size};
  cotangents[o] = tensor_over(cotangent, size > 1 ? 2 : 1, shape);
  parameters[v] = tensor_over(values, 1, &n);
  CHECK_OK(neml2_model_derivative_count(&count, p->model, NEML2_PARAMETER));
  for (int64_t d = 0; d < count; ++d) {
    int64_t of = 0, by = 0;
    of = derivative_info(p->model, NEML2_PARAMETER, d).output;
    by = derivative_info(p->model, NEML2_PARAMETER, d).variable;
    if (of == o && by == v) block_index = d;
  }
  if (CHECK_OK(neml2_model_jacobian(NULL, blocks, NULL, p->model, NEML2_PARAMETER, inputs, parameters)))
    CHECK_SAME(N * size, tensor_values(blocks[block_index]), block);
  if (CHECK_OK(neml2_model_vjp(NULL, adjoints, NULL, p->model, NEML2_PARAMETER, inputs, cotangents, parameters)))
    CHECK_SAME(N, tensor_values(adjoints[v]), adjoint);
  neml2_tensor_free(&parameters[v]);
  parameters[v] = tensor_over(values, 0, NULL);
  for (int k = 0; k < MOST; ++k) neml2_tensor_free(&adjoints[k]);
  if (CHECK_OK(neml2_model_vjp(NULL, adjoints, NULL, p->model, NEML2_PARAMETER, inputs, cotangents, parameters))) {
    int64_t ndim = -1;
    ndim = tensor_info(adjoints[v]).ndim;
    CHECK(ndim == 0);
    CHECK_OK(neml2_call_bind(call, NEML2_PARAMETER, name, values, NEML2_FLOAT64, 0));
    CHECK_OK(neml2_call_run(call, N));
    CHECK_NEAR(1, tensor_values(adjoints[v]), &total, 1e-14);
  }
  for (int k = 0; k < MOST; ++k) {
    neml2_tensor_free(&inputs[k]);
    neml2_tensor_free(&parameters[k]);
    neml2_tensor_free(&cotangents[k]);
    neml2_tensor_free(&adjoints[k]);
  }
  for (int k = 0; k < MOST * MOST; ++k) neml2_tensor_free(&blocks[k]);
  neml2_call_free(&call);
  free(block);
  free(plus);
  free(minus);
  free(cotangent);
}

/* With two Newton steps only the first point, which is elastic, converges; the others show how far they came. */
static void failed_points_show_their_unknowns(const char *root) {
  points p = points_of(root, isotropic_hardening);
  double solution[6 * N], cuts[N];
  int32_t iterations[N], status[N];
  neml2_call *call = call_over(&p);
  for (int64_t k = 0; k < p.ninputs; ++k)
    for (int64_t i = 0; i < p.input_size[k]; ++i) p.inputs[k][i] *= p.input_name[k][0] == 't' ? 1 : 0.1;
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", solution, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_ITERATIONS, iterations, 1));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_SUGGESTED_CUT, cuts, 1));
  CHECK_OK(neml2_call_bind_report(call, NEML2_REPORT_STATUS, status, 1));
  CHECK_OK(neml2_call_run(call, N));
  for (int q = 0; q < N; ++q) CHECK(cuts[q] == 1 && (q == 0 ? iterations[q] < 3 : iterations[q] > 2));
  CHECK_OK(neml2_model_option_set_number(p.model, "miters", 3));

  neml2_tensor *inputs[MOST] = {NULL}, *outputs[MOST] = {NULL}, *blocks[MOST * MOST] = {NULL}, *unknown = NULL;
  neml2_report *report = NULL;
  int64_t index = -1;
  for (int64_t k = 0; k < p.ninputs; ++k) {
    const int64_t shape[2] = {N, p.input_size[k]};
    inputs[k] = tensor_over(p.inputs[k], p.input_size[k] > 1 ? 2 : 1, shape);
  }
  CHECK_OK(neml2_model_variable_find(&index, p.model, NEML2_UNKNOWN, "stress"));
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_model_jacobian(outputs, blocks, &report, p.model, NEML2_INPUT, inputs, NULL));
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, N));
  CHECK(status[0] == NEML2_OK && cuts[0] == 1);
  for (int q = 1; q < N; ++q) CHECK(status[q] == NEML2_NOT_CONVERGED && (cuts[q] == 0.5 || cuts[q] == 0.25));
  if (CHECK_OK(neml2_report_get_unknown(&unknown, report, index)))
    for (int i = 0; i < 6 * N; ++i) {
      const double iterate = tensor_values(unknown)[i];
      CHECK(i < 6 ? isnan(iterate) : fabs(iterate - solution[i]) < 200); /* MPa */
      CHECK((i >= 6) == isnan(tensor_values(outputs[0])[i]));
      CHECK((i >= 6) == isnan(tensor_values(blocks[0])[6 * i]));
    }
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_report_get_unknown(&unknown, report, 2));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_report_get_unknown(&unknown, report, -1));
  neml2_report_free(&report);
  for (int k = 0; k < MOST; ++k) neml2_tensor_free(&outputs[k]);
  neml2_tensor_free(&unknown);

  CHECK_OK(neml2_model_option_set_number(p.model, "miters", 50));
  CHECK_OK(neml2_model_forward(outputs, &report, p.model, inputs, NULL));
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_report_get_unknown(&unknown, report, index));
  CHECK(unknown == NULL);
  for (int k = 0; k < MOST; ++k) neml2_tensor_free(&inputs[k]), neml2_tensor_free(&outputs[k]);
  for (int k = 0; k < MOST * MOST; ++k) neml2_tensor_free(&blocks[k]);
  neml2_report_free(&report);
  neml2_call_free(&call);
  points_free(&p);
}

/* A copy of the model in which two parameters end with the same name. */
static void ambiguous_names_are_refused(const char *root) {
  const char *copy = copy_of(root);
  replace_text(join_path(copy, "metadata.json"), "\"yield_stress\"", "\"surface.E\"");
  neml2_model *model = load(copy);
  neml2_call *call = NULL;
  double value = 1;
  int64_t index = -1;
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_variable_find(&index, model, NEML2_PARAMETER, "E"));
  CHECK_SAYS("residual.elasticity.E");
  CHECK_SAYS("surface.E");
  CHECK_ABOUT("E");
  CHECK_OK(neml2_model_variable_find(&index, model, NEML2_PARAMETER, "surface.E"));
  CHECK(index == 1);
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_PARAMETER, "E", &value, NEML2_FLOAT64, 0));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_PARAMETER_ADJOINT, "E", &value, NEML2_FLOAT64, 0));
  neml2_call_free(&call);
  neml2_model_free(&model);
  remove_copy(copy);
}

/* One input of a model, two steps old. */
static void histories_may_be_older(const neml2_model *model) {
  int64_t count = -1, input = -1, age = -1, current = -1, output = -2, expected = -1, older = 0;
  CHECK_OK(neml2_model_history_count(&count, model));
  for (int64_t i = 0; i < count; ++i) {
    input = history_info(model, i).input;
    age = history_info(model, i).age;
    output = history_info(model, i).output;
    current = history_info(model, i).current;
    if (age == 1) continue;
    ++older;
    CHECK_OK(neml2_model_variable_find(&expected, model, NEML2_INPUT, "t~2"));
    CHECK(age == 2 && input == expected && output == -1);
    CHECK_OK(neml2_model_variable_find(&expected, model, NEML2_INPUT, "t"));
    CHECK(current == expected);
  }
  CHECK(older == 1);
}

/* The blocks of a solve, of sizes (rows, columns) in its package, have no axes of one if a variable has none. */
static void blocks_have_the_axes_of_their_variables(const neml2_model *model) {
  int64_t count = 0;
  CHECK_OK(neml2_model_derivative_count(&count, model, NEML2_INPUT));
  for (int64_t d = 0; d < count; ++d) {
    int64_t o = -1, v = -1, ndim = -1, rows = -1, columns = -1;
    o = derivative_info(model, NEML2_INPUT, d).output;
    v = derivative_info(model, NEML2_INPUT, d).variable;
    ndim = derivative_info(model, NEML2_INPUT, d).ndim;
    rows = variable_info(model, NEML2_OUTPUT, o).ndim;
    columns = variable_info(model, NEML2_INPUT, v).ndim;
    CHECK(ndim == rows + columns);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return 77;
  points single = points_of(argv[1], isotropic_hardening), several = points_of(argv[2], radial_return);
  points grain = points_of(argv[3], crystal);
  blocks_have_two_orders(&grain, "stress", "deformation_rate", 1e-6);
  blocks_have_two_orders(&grain, "stress", "orientation~1", 1e-6);
  blocks_have_two_orders(&single, "equivalent_plastic_strain", "strain", 1e-6);
  blocks_have_two_orders(&several, "cauchy_stress", "t", 1e-6);
  products_are_those_of_the_blocks(&single);
  products_are_those_of_the_blocks(&several);
  failed_points_are_left_alone(&single);
  failed_points_are_left_alone(&several);
  parameters_have_derivatives(&single, "stress", "E", 200e3);
  parameters_have_derivatives(&single, "equivalent_plastic_strain", "yield_stress", 150);
  parameters_have_derivatives(&several, "cauchy_stress", "yield_stress", 150);
  failed_points_show_their_unknowns(argv[1]);
  ambiguous_names_are_refused(argv[1]);
  histories_may_be_older(grain.model);
  blocks_have_the_axes_of_their_variables(single.model);
  blocks_have_the_axes_of_their_variables(several.model);
  points_free(&single);
  points_free(&several);
  points_free(&grain);
  return CHECK_RESULT();
}
