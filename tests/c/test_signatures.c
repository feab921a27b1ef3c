/* What packages say of their inputs and outputs, packages in memory, and runs without guards; the argument is the folder
   of the packages of tests/models/signatures.py. Without it there is nothing to test: 77 says that it was skipped. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"
#include "materials.h"

enum { N = 3 };

/* The inputs of named.pt2: strain, old, temperature, count. */
static void some_inputs(neml2_tensor **inputs) {
  static double strain[N][3], old[N][3], temperature[N];
  static int32_t count[2] = {3, 4};
  const int64_t matrix[2] = {N, 3}, vector[1] = {N}, two[1] = {2};
  for (int p = 0; p < N; ++p) {
    temperature[p] = 1 + p;
    for (int i = 0; i < 3; ++i) strain[p][i] = 0.5 * p - i, old[p][i] = 0.25 * i;
  }
  inputs[0] = tensor_over(strain[0], 2, matrix);
  inputs[1] = tensor_over(old[0], 2, matrix);
  inputs[2] = tensor_over(temperature, 1, vector);
  REQUIRE_OK(neml2_tensor_wrap(&inputs[3], count, NEML2_INT32, 1, two, NULL, NULL, NULL));
}

static void free_all(int n, neml2_tensor **tensors) {
  for (int i = 0; i < n; ++i) neml2_tensor_free(&tensors[i]);
}

static void inputs_and_outputs_are_named(const neml2_graph *graph) {
  const char *inputs[4], *outputs[4], *in_spec = NULL, *out_spec = NULL;
  const int64_t *order = NULL, *sizes = NULL;
  int64_t ndim = 0;
  int32_t dtype = 0;
  for (int i = 0; i < 4; ++i) {
    inputs[i] = graph_variable_info(graph, NEML2_INPUT, i).name;
    ndim = graph_variable_info(graph, NEML2_INPUT, i).ndim;
    order = graph_variable_info(graph, NEML2_INPUT, i).order;
    CHECK(order[0] == 0 && (ndim == 1 || order[1] == 1));
    outputs[i] = graph_variable_info(graph, NEML2_OUTPUT, i).name;
  }
  CHECK(strcmp(inputs[1], "old") == 0 && strcmp(inputs[2], "temperature") == 0 && strcmp(inputs[3], "count") == 0);
  CHECK(strcmp(outputs[0], "stress") == 0 && strcmp(outputs[2], "parts.1") == 0 && strcmp(outputs[3], "solved") == 0);
  dtype = graph_variable_info(graph, NEML2_OUTPUT, 0).dtype;
  ndim = graph_variable_info(graph, NEML2_OUTPUT, 0).ndim;
  sizes = graph_variable_info(graph, NEML2_OUTPUT, 0).least;
  CHECK(dtype == NEML2_FLOAT64 && ndim == 2 && sizes[0] == -1 && sizes[1] == 3);
  dtype = graph_variable_info(graph, NEML2_OUTPUT, 3).dtype;
  ndim = graph_variable_info(graph, NEML2_OUTPUT, 3).ndim;
  sizes = graph_variable_info(graph, NEML2_OUTPUT, 3).least; /* of an operator outside of the package */
  CHECK(dtype == 0 && ndim == 3);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_graph_variable_inspect(INFO(neml2_graph_variable_info), graph, NEML2_OUTPUT, 4));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT,
               neml2_graph_variable_inspect(INFO(neml2_graph_variable_info), graph, NEML2_INPUT, -1));
  in_spec = graph_info(graph).in_spec;
  out_spec = graph_info(graph).out_spec;
  CHECK(strstr(in_spec, "temperature") && strstr(out_spec, "solved"));
}

static void it_runs_with_and_without_guards(const neml2_graph *graph) {
  neml2_tensor *inputs[4] = {NULL}, *guarded[4] = {NULL}, *unguarded[4] = {NULL}, *single = NULL;
  const int64_t matrix[2] = {N, 3};
  some_inputs(inputs);
  CHECK_OK(neml2_graph_run(guarded, 4, graph, inputs, 4));
  CHECK_OK(neml2_graph_run_unguarded(unguarded, 4, graph, inputs, 4));
  for (int i = 0; i < 2; ++i) CHECK_SAME(3 * N, tensor_values(guarded[i]), tensor_values(unguarded[i]));
  free_all(4, unguarded);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_run_unguarded(unguarded, 4, graph, inputs, 3));
  REQUIRE_OK(neml2_tensor_create(&single, NEML2_FLOAT32, 2, matrix));
  neml2_tensor *wrong[4] = {inputs[0], single, inputs[2], inputs[3]};
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_graph_run(unguarded, 4, graph, wrong, 4));
  CHECK_SAYS("'old'");
  neml2_tensor_free(&single);
  free_all(4, inputs);
  free_all(4, guarded);
}

static void columns_may_lie_side_by_side(const char *folder) {
  double values[N][3];
  const int64_t matrix[2] = {N, 3}, *order = NULL;
  neml2_graph *graph = NULL;
  neml2_tensor *output = NULL;
  for (int i = 0; i < 3 * N; ++i) values[i / 3][i % 3] = i;
  REQUIRE_OK(neml2_graph_open(&graph, SOURCE(.path = join_path(folder, "columns.pt2"))));
  order = graph_variable_info(graph, NEML2_INPUT, 0).order;
  CHECK(order[0] == 1 && order[1] == 0);
  neml2_tensor *input = tensor_over(values[0], 2, matrix);
  if (CHECK_OK(neml2_graph_run(&output, 1, graph, &input, 1))) {
    const int64_t *strides = NULL;
    strides = tensor_info(output).strides;
    for (int i = 0; i < 3 * N; ++i) {
      const double made = tensor_values(output)[i / 3 * strides[0] + i % 3 * strides[1]];
      CHECK(fabs(made - sin((double)i) - 1) < 1e-14);
    }
  }
  neml2_tensor_free(&output);
  neml2_tensor_free(&input);
  neml2_graph_free(&graph);
}

static void a_package_may_be_in_memory(const char *path) {
  size_t size = 0;
  neml2_graph *graph = NULL;
  char *content = read_bytes(path, &size);
  CHECK_STATUS(NEML2_ERROR_ARTIFACT,
               neml2_graph_open(&graph, SOURCE(.content = content, .content_size = (int64_t)size / 2)));
  CHECK_SAYS("the package in memory");
  CHECK_SAYS("truncated");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_open(&graph, SOURCE(.content = content, .content_size = -1)));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_open(&graph, SOURCE(.content_size = 1)));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_open(&graph, SOURCE(.path = path, .content = content)));
  CHECK_ABOUT("content");
  CHECK(graph == NULL);
  REQUIRE_OK(neml2_graph_open(
      &graph, SOURCE(.content = content, .content_size = (int64_t)size, .runtime = NEML2_RUNTIME_BUILTIN)));
  memset(content, 0, size); /* it is not needed any more */
  free(content);
  inputs_and_outputs_are_named(graph);
  it_runs_with_and_without_guards(graph);
  neml2_graph_free(&graph);
}

int main(int argc, char **argv) {
  if (argc != 2) return 77;
  const char *folder = argv[1];
  char path[4096];
  snprintf(path, sizeof path, "%s/named.pt2", folder);
  a_package_may_be_in_memory(path);
  columns_may_lie_side_by_side(folder);
  return CHECK_RESULT();
}
