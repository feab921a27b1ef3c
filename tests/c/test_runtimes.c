/* The runtime of packages is chosen at load, and reported. If NEML2_CAPI_LIBTORCH is set, libtorch runs them, too. */
#include "materials.h"

static const char *package(void) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/cpu/float64/elasticity.pt2", artifact("elasticity"));
  return path;
}

static void a_model_tells_its_runtime(int32_t wanted, int32_t expected) {
  neml2_model *model = NULL;
  int32_t taken = -1;
  if (CHECK_OK(neml2_model_open(&model, SOURCE(.path = artifact("elasticity"), .runtime = wanted)))) {
    taken = model_info(model).runtime;
    CHECK(taken == expected);
    CHECK_ELASTICITY(model);
  }
  neml2_model_free(&model);
}

static void a_stub_is_loaded_by_name(void) {
  char stub[4096];
  neml2_model *model = NULL;
  snprintf(stub, sizeof stub, "%s_aoti.i", artifact("elasticity"));
  if (CHECK_OK(neml2_model_open(&model, SOURCE(.path = stub, .name = "elasticity", .device = NEML2_DEVICE_CPU,
                                               .dtype = NEML2_FLOAT64, .runtime = NEML2_RUNTIME_BUILTIN))))
    CHECK_ELASTICITY(model);
  neml2_model_free(&model);
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_open(&model, SOURCE(.path = stub, .name = "elastic")));
}

static void a_graph_tells_its_runtime(int32_t wanted, int32_t expected) {
  neml2_graph *graph = NULL;
  int32_t taken = -1;
  CHECK_OK(neml2_graph_check(&taken, SOURCE(.path = package(), .runtime = wanted)));
  CHECK(taken == expected);
  taken = -1;
  if (CHECK_OK(neml2_graph_open(&graph, SOURCE(.path = package(), .runtime = wanted))))
    taken = graph_info(graph).runtime;
  CHECK(taken == expected);
  neml2_graph_free(&graph);
}

static void a_runtime_that_does_not_exist_is_refused(void) {
  neml2_model *model = NULL;
  neml2_graph *graph = NULL;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, SOURCE(.path = artifact("elasticity"), .runtime = 4)));
  CHECK_ABOUT("runtime");
  CHECK_SAYS("NEML2_RUNTIME_AUTO");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_open(&graph, SOURCE(.path = package(), .runtime = -1)));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_check(NULL, SOURCE(.path = package(), .runtime = 4)));
  CHECK(!model && !graph);
}

static void schemas_are_read(void) {
  CHECK_OK(neml2_operator_declare("mylib::scale.out(Tensor x, float[2]? factor=[1.0, 2.0], *, str how='a, (b') -> ()"));
  CHECK_OK(neml2_operator_declare("mylib::scale(Tensor(a!) x, int n=3) -> (Tensor, Tensor(a!))"));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_declare("scale(Tensor x) -> Tensor"));
  CHECK_SAYS("does not name its library");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_declare("mylib::scale(Tensor x -> Tensor"));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_declare("mylib::scale(Tensor) -> Tensor"));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_operator_declare(""));
}

static void without_libtorch_it_says_how_to_tell_where_it_is(void) {
  neml2_graph *graph = NULL;
  CHECK_OK(neml2_libtorch_suggest("/no/such/folder"));
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_libtorch_open(NULL, NULL));
  CHECK_SAYS("NEML2_CAPI_LIBTORCH");
  CHECK_STATUS(NEML2_ERROR_FILE,
               neml2_graph_open(&graph, SOURCE(.path = package(), .runtime = NEML2_RUNTIME_LIBTORCH)));
  CHECK_SAYS("Install torch 2.10 or later");
  CHECK(neml2_error_cause() == NEML2_CAUSE_LIBTORCH_MISSING);
  CHECK(!graph);
}

static void libtorch_is_told(void) {
  const char *path = NULL, *version = NULL;
  CHECK_OK(neml2_libtorch_open(&path, &version));
  CHECK(path && strstr(path, "libtorch_cpu.so"));
  CHECK(version && strncmp(version, "2.", 2) == 0);
}

int main(void) {
  const char *place = getenv("NEML2_CAPI_LIBTORCH");
  a_model_tells_its_runtime(NEML2_RUNTIME_AUTO, NEML2_RUNTIME_BUILTIN);
  a_model_tells_its_runtime(NEML2_RUNTIME_BUILTIN, NEML2_RUNTIME_BUILTIN);
  a_graph_tells_its_runtime(NEML2_RUNTIME_AUTO, NEML2_RUNTIME_BUILTIN);
  a_stub_is_loaded_by_name();
  a_runtime_that_does_not_exist_is_refused();
  schemas_are_read();
  if (place && *place) {
    a_model_tells_its_runtime(NEML2_RUNTIME_LIBTORCH, NEML2_RUNTIME_LIBTORCH);
    a_graph_tells_its_runtime(NEML2_RUNTIME_LIBTORCH, NEML2_RUNTIME_LIBTORCH);
    libtorch_is_told();
  } else {
    without_libtorch_it_says_how_to_tell_where_it_is();
  }
  return CHECK_RESULT();
}
