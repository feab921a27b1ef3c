/* What packages run on is chosen at load, and told. Where NEML2_CAPI_LIBTORCH is set, libtorch runs them, too. */
#include "materials.h"

static const char *package(void) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/cpu/float64/elasticity.pt2", artifact("elasticity"));
  return path;
}

static void a_model_tells_its_runtime(const char *wanted, const char *expected) {
  neml2_model *model = NULL;
  const char *taken = NULL;
  if (CHECK_OK(neml2_model_load_with(&model, artifact("elasticity"), NULL, NULL, NULL, wanted))) {
    CHECK_OK(neml2_model_runtime(&taken, model));
    CHECK(taken && strcmp(taken, expected) == 0);
    CHECK_ELASTICITY(model);
  }
  neml2_model_free(&model);
}

static void a_stub_is_loaded_by_name(void) {
  char stub[4096];
  neml2_model *model = NULL;
  snprintf(stub, sizeof stub, "%s_aoti.i", artifact("elasticity"));
  if (CHECK_OK(neml2_model_load_with(&model, stub, "elasticity", "cpu", "float64", "builtin"))) CHECK_ELASTICITY(model);
  neml2_model_free(&model);
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_load_with(&model, stub, "elastic", NULL, NULL, NULL));
}

static void a_graph_tells_its_runtime(const char *wanted, const char *expected) {
  neml2_graph *graph = NULL;
  const char *taken = NULL;
  CHECK_OK(neml2_graph_check_with(&taken, package(), wanted));
  CHECK(taken && strcmp(taken, expected) == 0);
  taken = NULL;
  if (CHECK_OK(neml2_graph_load_with(&graph, package(), wanted))) CHECK_OK(neml2_graph_runtime(&taken, graph));
  CHECK(taken && strcmp(taken, expected) == 0);
  neml2_graph_free(&graph);
}

static void a_runtime_that_does_not_exist_is_refused(void) {
  neml2_model *model = NULL;
  neml2_graph *graph = NULL;
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_load_with(&model, artifact("elasticity"), NULL, NULL, NULL, "torch"));
  CHECK_ABOUT("torch");
  CHECK_SAYS("builtin, libtorch");
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_graph_load_with(&graph, package(), ""));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_graph_check_with(NULL, package(), "Builtin"));
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
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_libtorch_find(NULL, NULL));
  CHECK_SAYS("NEML2_CAPI_LIBTORCH");
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_graph_load_with(&graph, package(), "libtorch"));
  CHECK_SAYS("Install torch 2.10 or later");
  CHECK(!graph);
}

static void libtorch_is_told(void) {
  const char *path = NULL, *version = NULL;
  CHECK_OK(neml2_libtorch_find(&path, &version));
  CHECK(path && strstr(path, "libtorch_cpu.so"));
  CHECK(version && strncmp(version, "2.", 2) == 0);
}

int main(void) {
  const char *place = getenv("NEML2_CAPI_LIBTORCH");
  a_model_tells_its_runtime(NULL, "builtin");
  a_model_tells_its_runtime("auto", "builtin");
  a_model_tells_its_runtime("builtin", "builtin");
  a_graph_tells_its_runtime("auto", "builtin");
  a_stub_is_loaded_by_name();
  a_runtime_that_does_not_exist_is_refused();
  schemas_are_read();
  if (place && *place) {
    a_model_tells_its_runtime("libtorch", "libtorch");
    a_graph_tells_its_runtime("libtorch", "libtorch");
    libtorch_is_told();
  } else {
    without_libtorch_it_says_how_to_tell_where_it_is();
  }
  return CHECK_RESULT();
}
