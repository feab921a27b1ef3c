/* Code of a package that prints: nothing comes to the standard streams of the host, and the log has it. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <unistd.h>

#include "materials.h"

int main(void) {
  char package[4200], printed[4096] = "", path[] = "/tmp/neml2-output-XXXXXX";
  snprintf(package, sizeof package, "%s/cpu/float64/elasticity.pt2", artifact("elasticity"));
  if (access(package, R_OK) != 0) return 77; /* kernels alone, on another processor */
  setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", 1);
  neml2_graph *graph = NULL;
  REQUIRE_OK(neml2_graph_open(&graph, SOURCE(.path = package)));
  REQUIRE_OK(neml2_log_level_set("model", NEML2_LOG_INFO));

  /* Inputs that do not fit: the package itself finds it, prints, and fails. */
  int64_t count = 0;
  REQUIRE_OK(neml2_graph_variable_count(&count, graph, NEML2_INPUT));
  const int64_t shape[2] = {3, 5};
  double values[15] = {0};
  neml2_tensor *inputs[8], *output = NULL;
  for (int64_t i = 0; i < count; ++i) inputs[i] = tensor_over(values, 2, shape);
  const int file = mkstemp(path), before[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
  fflush(NULL);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  const int32_t status = neml2_graph_run_unguarded(&output, 1, graph, inputs, count);
  fflush(NULL);
  dup2(before[0], STDOUT_FILENO);
  dup2(before[1], STDERR_FILENO);
  CHECK_STATUS(NEML2_ERROR_RUNTIME, status);
  CHECK(pread(file, printed, sizeof printed - 1, 0) == 0);
  if (printed[0]) fprintf(stderr, "  printed: %s\n", printed);

  int32_t level = 0;
  char text[NEML2_LOG_LENGTH];
  int told = 0;
  do {
    CHECK_OK(neml2_log_next(&level, NULL, text, sizeof text, NULL));
    told += strncmp(text, "a package printed: ", 19) == 0 && strlen(text) > 25;
  } while (level != NEML2_LOG_SILENT);
  CHECK(told >= 1);
  close(file);
  unlink(path);
  for (int64_t i = 0; i < count; ++i) neml2_tensor_free(&inputs[i]);
  neml2_graph_free(&graph);
  return CHECK_RESULT();
}
