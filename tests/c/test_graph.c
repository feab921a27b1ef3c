/* One package alone: its inputs are known, checked, and run. */
#include "materials.h"

enum { N = 5 };

static neml2_graph *load_graph(const char *root) {
  char path[4096];
  neml2_graph *graph = NULL;
  snprintf(path, sizeof path, "%s/cpu/float64/elasticity.pt2", root);
  REQUIRE_OK(neml2_graph_open(&graph, SOURCE(.path = path)));
  return graph;
}

static void inputs_are_described(const neml2_graph *graph) {
  int64_t ninputs = 0, noutputs = 0, ndim = 0;
  int32_t dtype = 0;
  const int64_t *least = NULL, *greatest = NULL;
  CHECK_OK(neml2_graph_variable_count(&ninputs, graph, NEML2_INPUT));
  CHECK_OK(neml2_graph_variable_count(&noutputs, graph, NEML2_OUTPUT));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_variable_count(&ninputs, graph, NEML2_PARAMETER));
  CHECK(ninputs == 2 && noutputs == 1); /* strain and the modulus; stress */
  dtype = graph_variable_info(graph, NEML2_INPUT, 0).dtype;
  ndim = graph_variable_info(graph, NEML2_INPUT, 0).ndim;
  least = graph_variable_info(graph, NEML2_INPUT, 0).least;
  greatest = graph_variable_info(graph, NEML2_INPUT, 0).greatest;
  CHECK(dtype == NEML2_FLOAT64 && ndim == 2);
  CHECK(ndim == 2 && least[0] < greatest[0] && least[1] == 6 && greatest[1] == 6);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_graph_variable_inspect(INFO(neml2_graph_variable_info), graph, NEML2_INPUT, 2));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_graph_variable_inspect(INFO(neml2_graph_variable_info), graph, NEML2_INPUT, -1));
}

/* The modulus as the package wants it: a scalar, or one value per point. */
static neml2_tensor *young(const neml2_graph *graph) {
  static double values[N];
  const int64_t n = N, n1[2] = {N, 1};
  int64_t ndim = 0;
  for (int i = 0; i < N; ++i) values[i] = YOUNG;
  ndim = graph_variable_info(graph, NEML2_INPUT, 1).ndim;
  return tensor_over(values, ndim, ndim == 2 ? n1 : &n);
}

static void it_runs(const neml2_graph *graph) {
  const int64_t shape[2] = {N, 6};
  double strain[N][6], expected[N][6];
  some_strains(N, strain[0]);
  hooke(N, YOUNG, strain[0], expected[0]);
  neml2_tensor *inputs[2] = {tensor_over(strain[0], 2, shape), young(graph)}, *output = NULL;
  const int64_t *sizes = NULL, *strides = NULL;
  int64_t ndim = 0;
  if (CHECK_OK(neml2_graph_run(&output, 1, graph, inputs, 2))) {
    ndim = tensor_info(output).ndim;
    sizes = tensor_info(output).shape;
    strides = tensor_info(output).strides;
    CHECK(ndim == 2 && sizes[0] == N && sizes[1] == 6);
    const double *values = tensor_values(output);
    for (int p = 0; p < N; ++p)
      for (int i = 0; i < 6; ++i)
        CHECK(fabs(values[p * strides[0] + i * strides[1]] - expected[p][i]) <= 1e-12 * fabs(expected[p][0]));
  }
  neml2_tensor_free(&output);
  neml2_tensor_free(&inputs[0]);
  neml2_tensor_free(&inputs[1]);
}

static void what_does_not_fit_is_refused(const neml2_graph *graph) {
  const int64_t shape[2] = {N, 6}, wide[2] = {N, 7}, one_axis[1] = {6};
  neml2_tensor *inputs[2] = {NULL, young(graph)}, *outputs[2] = {NULL, NULL};
  REQUIRE_OK(neml2_tensor_create(&inputs[0], NEML2_FLOAT64, 2, shape));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_run(outputs, 1, graph, inputs, 1));
  CHECK_SAYS("2");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_run(outputs, 2, graph, inputs, 2));
  neml2_tensor_free(&inputs[0]);
  REQUIRE_OK(neml2_tensor_create(&inputs[0], NEML2_FLOAT64, 2, wide));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_graph_run(outputs, 1, graph, inputs, 2));
  CHECK_SAYS("6");
  neml2_tensor_free(&inputs[0]);
  REQUIRE_OK(neml2_tensor_create(&inputs[0], NEML2_FLOAT64, 1, one_axis));
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_graph_run(outputs, 1, graph, inputs, 2));
  neml2_tensor_free(&inputs[0]);
  REQUIRE_OK(neml2_tensor_create(&inputs[0], NEML2_FLOAT32, 2, shape));
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_graph_run(outputs, 1, graph, inputs, 2));
  CHECK_SAYS("float64");
  neml2_tensor_free(&inputs[0]);
  neml2_tensor_free(&inputs[1]);
  CHECK(outputs[0] == NULL && outputs[1] == NULL);
}

int main(void) {
  neml2_graph *graph = load_graph(artifact("elasticity"));
  inputs_are_described(graph);
  it_runs(graph);
  what_does_not_fit_is_refused(graph);
  it_runs(graph);
  neml2_graph_free(&graph);
  CHECK(graph == NULL);
  return CHECK_RESULT();
}
