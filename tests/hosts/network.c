/* A network on libtorch, from C: network PACKAGE FILE SIZE... Prints its output for the float32 numbers in the file. */
#include "../c/check.h"

int main(int argc, char **argv) {
  int64_t shape[8], count = 1, ndim = argc - 3, results = 1;
  const int64_t *sizes = NULL;
  neml2_graph *graph = NULL;
  neml2_tensor *input = NULL, *output = NULL;
  void *data = NULL;
  if (ndim < 1 || ndim > 8) return 2;
  for (int i = 0; i < ndim; ++i) count *= shape[i] = strtoll(argv[i + 3], NULL, 10);
  REQUIRE_OK(neml2_tensor_create(&input, NEML2_FLOAT32, ndim, shape));
  data = tensor_info(input).data;
  FILE *file = fopen(argv[2], "rb");
  if (!file || fread(data, sizeof(float), (size_t)count, file) != (size_t)count) return 2;
  fclose(file);
  REQUIRE_OK(neml2_graph_open(&graph, SOURCE(.path = argv[1], .runtime = NEML2_RUNTIME_LIBTORCH)));
  REQUIRE_OK(neml2_graph_run(&output, 1, graph, &input, 1));
  ndim = tensor_info(output).ndim;
  sizes = tensor_info(output).shape; /* row-major */
  data = tensor_info(output).data;
  for (int64_t i = 0; i < ndim; ++i) results *= sizes[i];
  for (int64_t i = 0; i < results; ++i) printf("%.9g\n", (double)((const float *)data)[i]);
  neml2_tensor_free(&input);
  neml2_tensor_free(&output);
  neml2_graph_free(&graph);
  return CHECK_RESULT();
}
