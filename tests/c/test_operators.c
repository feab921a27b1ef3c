/* A package calls a function of the host. NEML2_TEST_OPERATORS is the folder that tests/models/operators.py fills; if
 * it is not set, only what needs no package is tested. */
#include "check.h"

#define SCHEMA "neml2_capi_operators::saturate(Tensor x, float scale=1.0, bool twice=False, int order=1) -> Tensor"

static const char *package(void) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/saturate.pt2", getenv("NEML2_TEST_OPERATORS"));
  return path;
}

/* What the function is asked for, and what it met. */
typedef struct {
  int32_t status;    /* to return instead of a result */
  const char *error; /* to record with it */
  int wrong_shape;
  int32_t met;
} request;

static int32_t saturate(void *context, neml2_operator_call *call) {
  request *wanted = context;
  neml2_tensor *const *x = NULL;
  neml2_tensor *y = NULL;
  const double *scale = NULL;
  const int64_t *twice = NULL, *order = NULL, *shape = NULL;
  const char *name = NULL;
  int64_t ndim = 0, size = 1, narguments = 0, noutputs = 0, index = -1, count = 0;
  int32_t kind = -1;
  void *from = NULL, *to = NULL;

  if (wanted->status != NEML2_OK)
    return wanted->error ? neml2_error_record(wanted->status, NEML2_CAUSE_NONE, NULL, wanted->error) : wanted->status;
  CHECK_OK(neml2_operator_call_count(&narguments, call, NEML2_INPUT));
  CHECK_OK(neml2_operator_call_count(&noutputs, call, NEML2_OUTPUT));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_call_count(&noutputs, call, NEML2_PARAMETER));
  CHECK(narguments == 4 && noutputs == 1);
  CHECK_OK(neml2_operator_call_find(&index, call, "twice"));
  CHECK(index == 2);
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_operator_call_find(&index, call, "thrice"));
  name = argument_info(call, 1).name;
  kind = argument_info(call, 1).kind;
  count = argument_info(call, 1).count;
  CHECK(strcmp(name, "scale") == 0 && kind == NEML2_ARGUMENT_REAL && count == -1);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_call_inspect(INFO(neml2_argument_info), call, 4));
  CHECK_OK(neml2_operator_call_get_tensors(&x, call, 0));
  CHECK_OK(neml2_operator_call_get_reals(&scale, call, 1));
  CHECK_OK(neml2_operator_call_get_integers(&twice, call, 2));
  CHECK_OK(neml2_operator_call_get_integers(&order, call, 3));
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_operator_call_get_reals(&scale, call, 3));
  CHECK_ABOUT("order");
  CHECK_SAYS("is an integer, and was read as a real number");
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_operator_call_get_text(&name, call, 0));

  ndim = tensor_info(*x).ndim;
  shape = tensor_info(*x).shape;
  CHECK_OK(neml2_tensor_create(&y, NEML2_FLOAT64, wanted->wrong_shape ? 1 : ndim, shape));
  for (int64_t i = 0; i < ndim; ++i) size *= shape[i];
  from = tensor_info(*x).data;
  to = tensor_info(y).data;
  for (int64_t i = 0; i < size && !wanted->wrong_shape; ++i) {
    const double power = pow(((const double *)from)[i], (double)*order);
    ((double *)to)[i] = (*twice ? 2 : 1) * *scale * power / (1 + power);
  }
  wanted->met = neml2_operator_call_set_output(call, 0, &y);
  CHECK(!y);
  return wanted->met;
}

static const double values[8] = {0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4};

/* The status of a run; if it is NEML2_OK, the result is right. */
static int32_t run(const neml2_graph *graph) {
  const int64_t shape[2] = {2, 4};
  double given[8], expected[8];
  neml2_tensor *input = NULL, *output = NULL;
  int32_t status;
  for (int i = 0; i < 8; ++i)
    given[i] = values[i], expected[i] = values[i] * values[i] / (1 + values[i] * values[i]) + 1;
  CHECK_OK(neml2_tensor_wrap(&input, given, NEML2_FLOAT64, 2, shape, NULL, NULL, NULL));
  status = neml2_graph_run(&output, 1, graph, &input, 1);
  if (status == NEML2_OK) CHECK_NEAR(8, tensor_info(output).data, expected, 1e-15);
  CHECK((status == NEML2_OK) == (output != NULL));
  neml2_tensor_free(&input);
  neml2_tensor_free(&output);
  return status;
}

static void a_package_calls_the_function(void) {
  request wanted = {NEML2_OK, NULL, 0, NEML2_ERROR_INTERNAL};
  neml2_graph *graph = NULL;
  CHECK_STATUS(NEML2_ERROR_UNSUPPORTED,
               neml2_graph_open(&graph, SOURCE(.path = package(), .runtime = NEML2_RUNTIME_BUILTIN)));
  CHECK_SAYS("neml2_operator_register");
  CHECK_OK(neml2_operator_register(SCHEMA, saturate, &wanted));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_register(SCHEMA, saturate, &wanted));
  if (CHECK_OK(neml2_graph_open(&graph, SOURCE(.path = package())))) {
    CHECK_OK(run(graph));
    CHECK_OK(wanted.met);

    wanted.status = NEML2_NOT_CONVERGED;
    wanted.error = "on purpose";
    CHECK_STATUS(NEML2_NOT_CONVERGED, run(graph));
    CHECK_SAYS("neml2_capi_operators::saturate failed: on purpose");
    wanted.status = NEML2_ERROR_FILE;
    wanted.error = NULL;
    CHECK_STATUS(NEML2_ERROR_FILE, run(graph));
    CHECK_SAYS("it did not say why");
    wanted.status = 77;
    CHECK_STATUS(NEML2_ERROR_RUNTIME, run(graph));
    CHECK_SAYS("returned 77");
    wanted.status = NEML2_OK;
    wanted.wrong_shape = 1;
    CHECK_STATUS(NEML2_ERROR_SHAPE, run(graph));
    CHECK_ABOUT("neml2_capi_operators::saturate");
    CHECK_SAYS("must have the shape (2, 4), and has (2,)");
    wanted.wrong_shape = 0;
    CHECK_OK(run(graph));

    CHECK_OK(neml2_operator_unregister("neml2_capi_operators::saturate"));
    CHECK_STATUS(NEML2_ERROR_UNSUPPORTED, run(graph));
    CHECK_SAYS("was unregistered");
  }
  neml2_graph_free(&graph);
}

static int32_t nothing(void *context, neml2_operator_call *call) {
  (void)context, (void)call;
  return NEML2_OK;
}

static void operators_come_and_go(void) {
  CHECK_OK(neml2_operator_register("mylib::nothing.much(Tensor x) -> Tensor", nothing, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_register("mylib::nothing.much(Tensor y) -> Tensor", nothing, NULL));
  CHECK_SAYS("is registered already");
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_operator_unregister("mylib::nothing"));
  CHECK_OK(neml2_operator_unregister("mylib::nothing.much"));
  CHECK_OK(neml2_operator_register(" mylib::nothing.much(Tensor x) -> Tensor", nothing, NULL));
  CHECK_OK(neml2_operator_unregister(" mylib::nothing.much(Tensor x) -> Tensor"));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_operator_unregister(""));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_register("nothing(Tensor x) -> Tensor", nothing, NULL));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_register("mylib::nothing(Device x) -> Tensor", nothing, NULL));
}

int main(void) {
  operators_come_and_go();
  if (getenv("NEML2_TEST_OPERATORS")) a_package_calls_the_function();
  return CHECK_RESULT();
}
