/* Prints the bits of all outputs and derivatives of a model: bits ARTIFACT INPUTS POINTS, where INPUTS is a file with the
 * doubles of one input after the other, [point][component]. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neml2_capi.h"

static void require(int32_t status, const char *what) {
  char message[2048];
  if (status == NEML2_OK) return;
  neml2_error_message(message, sizeof message, NULL);
  fprintf(stderr, "%s: status %d: %s\n", what, (int)status, message);
  exit(1);
}

static size_t product(int64_t ndim, const int64_t *shape) {
  size_t size = 1;
  for (int64_t i = 0; i < ndim; ++i) size *= (size_t)shape[i];
  return size;
}

/* Numbers of a result, which has their name before them. */
typedef struct {
  const char *name, *by;
  double *values;
  size_t size;
} result;

static double *space(size_t n) {
  double *values = calloc(n + 1, sizeof *values);
  if (!values) exit(1);
  return values;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const size_t points = (size_t)atoi(argv[3]);
  FILE *file = fopen(argv[2], "rb");
  neml2_model *model = NULL;
  neml2_call *call = NULL;
  neml2_source source = {.size = sizeof source, .path = argv[1]};
  require(neml2_model_open(&model, &source), argv[1]);
  require(neml2_call_create(&call, model), "call");
  static result results[100];
  int64_t inputs = 0, outputs = 0, derivatives = 0;
  require(neml2_model_variable_count(&inputs, model, NEML2_INPUT), "inputs");
  require(neml2_model_variable_count(&outputs, model, NEML2_OUTPUT), "outputs");
  require(neml2_model_derivative_count(&derivatives, model, NEML2_INPUT), "derivatives");
  if (!file || outputs + derivatives > 100) return 3;
  neml2_variable_info v = {.size = sizeof v}, by = {.size = sizeof by};
  for (int64_t i = 0; i < inputs; ++i) {
    require(neml2_model_variable_inspect(&v, model, NEML2_INPUT, i), "input");
    const size_t n = product(v.ndim, v.shape);
    double *values = space(n * points);
    if (fread(values, sizeof *values, n * points, file) != n * points) return 4;
    require(neml2_call_bind(call, NEML2_INPUT, v.name, values, NEML2_FLOAT64, (int64_t)n), v.name);
  }
  for (int64_t i = 0; i < outputs; ++i) {
    require(neml2_model_variable_inspect(&v, model, NEML2_OUTPUT, i), "output");
    const size_t n = product(v.ndim, v.shape);
    results[i] = (result){v.name, "", space(n * points), n * points};
    require(neml2_call_bind(call, NEML2_OUTPUT, v.name, results[i].values, NEML2_FLOAT64, (int64_t)n), v.name);
  }
  for (int64_t i = 0; i < derivatives; ++i) {
    neml2_derivative_info d = {.size = sizeof d};
    require(neml2_model_derivative_inspect(&d, model, NEML2_INPUT, i), "derivative");
    require(neml2_model_variable_inspect(&v, model, NEML2_OUTPUT, d.output), "output");
    require(neml2_model_variable_inspect(&by, model, NEML2_INPUT, d.variable), "input");
    const size_t n = product(d.ndim, d.shape);
    result *r = &results[outputs + i];
    *r = (result){v.name, by.name, space(n * points), n * points};
    require(neml2_call_bind_derivative(call, NEML2_INPUT, v.name, by.name, r->values, NEML2_FLOAT64, (int64_t)n),
            by.name);
  }
  require(neml2_call_run(call, (int64_t)points), "run");
  for (int64_t i = 0; i < outputs + derivatives; ++i) {
    printf("%s %s", results[i].name, results[i].by);
    for (size_t k = 0; k < results[i].size; ++k) {
      uint64_t bits;
      memcpy(&bits, &results[i].values[k], sizeof bits);
      printf(" %016" PRIx64, bits);
    }
    printf("\n");
  }
  neml2_call_free(&call);
  neml2_model_free(&model);
  return 0;
}
