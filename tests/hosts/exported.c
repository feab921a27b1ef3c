/* What neml2_capi.export wrote, from C and on the built-in runtime: exported FOLDER. Prints what it returns, one
 * tensor per line. */
#include "../c/check.h"

enum { N = 3 };

static neml2_graph *load(const char *folder, const char *name) {
  char path[4096];
  neml2_graph *graph = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  REQUIRE_OK(neml2_graph_open(&graph, SOURCE(.path = path, .runtime = NEML2_RUNTIME_BUILTIN)));
  return graph;
}

static neml2_tensor *wrap(void *data, int32_t dtype, int64_t ndim, const int64_t *shape) {
  neml2_tensor *tensor = NULL;
  REQUIRE_OK(neml2_tensor_wrap(&tensor, data, dtype, ndim, shape, NULL, NULL, NULL));
  return tensor;
}

static double element(const void *data, int32_t dtype, int64_t i) {
  switch (dtype) {
    case NEML2_FLOAT64: return ((const double *)data)[i];
    case NEML2_FLOAT32: return (double)((const float *)data)[i];
    case NEML2_INT64: return (double)((const int64_t *)data)[i];
    case NEML2_INT32: return (double)((const int32_t *)data)[i];
    default: return (double)((const uint8_t *)data)[i]; /* bool */
  }
}

static void print_numbers(const void *data, int32_t dtype, int64_t count) {
  for (int64_t i = 0; i < count; ++i) printf("%.17g%c", element(data, dtype, i), i + 1 < count ? ' ' : '\n');
}

/* The outputs here are row-major. */
static void print(const neml2_tensor *tensor) {
  int32_t dtype = 0;
  int64_t ndim = 0, count = 1;
  const int64_t *shape = NULL;
  void *data = NULL;
  dtype = tensor_info(tensor).dtype;
  ndim = tensor_info(tensor).ndim;
  shape = tensor_info(tensor).shape;
  data = tensor_info(tensor).data;
  for (int64_t i = 0; i < ndim; ++i) count *= shape[i];
  print_numbers(data, dtype, count);
}

static void run(neml2_graph *graph, neml2_tensor **inputs, int64_t ninputs, int64_t noutputs) {
  neml2_tensor *outputs[4] = {NULL};
  REQUIRE_OK(neml2_graph_run(outputs, noutputs, graph, inputs, ninputs));
  for (int64_t i = 0; i < noutputs; ++i) print(outputs[i]);
  for (int64_t i = 0; i < noutputs; ++i) neml2_tensor_free(&outputs[i]);
  for (int64_t i = 0; i < ninputs; ++i) neml2_tensor_free(&inputs[i]);
  neml2_graph_free(&graph);
}

static void network(const char *folder) {
  double x[N][6];
  const int64_t shape[2] = {N, 6};
  for (int p = 0; p < N; ++p)
    for (int i = 0; i < 6; ++i) x[p][i] = 0.5 * (p + 1) - 0.25 * i;
  neml2_tensor *input = wrap(x, NEML2_FLOAT64, 2, shape);
  run(load(folder, "network.pt2"), &input, 1, 1);
}

static void table(const char *folder) {
  int64_t phase[N] = {0, 1, 2};
  int32_t count[N] = {2, 3, 4};
  float value[N] = {0.0F, 0.25F, 0.5F};
  const int64_t n = N;
  neml2_tensor *inputs[3] = {wrap(phase, NEML2_INT64, 1, &n), wrap(count, NEML2_INT32, 1, &n),
                             wrap(value, NEML2_FLOAT32, 1, &n)};
  run(load(folder, "table.pt2"), inputs, 3, 4);
}

static void perzyna(const char *folder) {
  double strain[N][6] = {{0}}, zeros[N][6] = {{0}}, time = 1, stress[N][6], tangent[N][6][6];
  char path[4096];
  neml2_model *model = NULL;
  neml2_call *call = NULL;
  for (int p = 0; p < N; ++p) strain[p][0] = 1e-3 * (p + 1), strain[p][4] = -5e-4 * p;
  snprintf(path, sizeof path, "%s/perzyna", folder);
  REQUIRE_OK(neml2_model_open(&model, SOURCE(.path = path)));
  REQUIRE_OK(neml2_call_create(&call, model));
  REQUIRE_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  REQUIRE_OK(neml2_call_bind(call, NEML2_INPUT, "t", &time, NEML2_FLOAT64, 0));
  REQUIRE_OK(neml2_call_bind(call, NEML2_INPUT, "t~1", zeros, NEML2_FLOAT64, 0));
  REQUIRE_OK(neml2_call_bind(call, NEML2_INPUT, "strain~1", zeros, NEML2_FLOAT64, 6));
  REQUIRE_OK(neml2_call_bind(call, NEML2_INPUT, "stress~1", zeros, NEML2_FLOAT64, 6));
  REQUIRE_OK(neml2_call_bind(call, NEML2_INPUT, "p~1", zeros, NEML2_FLOAT64, 6));
  REQUIRE_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  REQUIRE_OK(neml2_call_bind_derivative(call, NEML2_INPUT, "stress", "strain", tangent, NEML2_FLOAT64, 36));
  REQUIRE_OK(neml2_call_run(call, N));
  print_numbers(stress, NEML2_FLOAT64, N * 6);
  print_numbers(tangent, NEML2_FLOAT64, N * 36);
  neml2_call_free(&call);
  neml2_model_free(&model);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  network(argv[1]);
  table(argv[1]);
  perzyna(argv[1]);
  return CHECK_RESULT();
}
