/* Structures carry their size: programs and libraries of different releases understand each other. */
#include <stddef.h>

#include "materials.h"

static void a_size_that_was_not_set_is_refused(void) {
  neml2_model *model = NULL;
  neml2_source source = {.path = artifact("elasticity")};
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, &source));
  CHECK_ABOUT("size");
  CHECK_SAYS("structure 'source'");
  source.size = sizeof source - 8;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, &source));
  CHECK_ABOUT("size");
  source.size = -1;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, &source));
  source.size = 1 << 20;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, &source));
  CHECK(!model);
}

/* A program that was compiled with the header of a later release. */
typedef struct {
  neml2_source known;
  int64_t later;
} later_source;
typedef struct {
  neml2_model_info known;
  int64_t later;
} later_info;

static void a_field_of_a_later_release_is_refused_unless_it_is_0(void) {
  neml2_model *model = NULL;
  later_source source = {.known = {.size = sizeof source, .path = artifact("elasticity")}, .later = 1};
  later_info info = {.known = {.size = sizeof info}, .later = 1};
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, &source.known));
  CHECK_ABOUT("source");
  CHECK_SAYS("does not know");
  source.later = 0;
  REQUIRE_OK(neml2_model_open(&model, &source.known));
  CHECK_ELASTICITY(model);
  CHECK_OK(neml2_model_inspect(&info.known, model));
  CHECK(info.later == 0 && info.known.size == sizeof info && info.known.dtype == NEML2_FLOAT64);
  info.known.size = 0;
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_inspect(&info.known, model));
  CHECK_ABOUT("size");
  neml2_model_free(&model);
}

/* What one field says against another. */
static void a_field_that_does_not_fit_is_named(void) {
  neml2_model *model = NULL;
  neml2_graph *graph = NULL;
  const char *path = artifact("elasticity");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, SOURCE(.path = path, .device = 3)));
  CHECK_ABOUT("device");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, SOURCE(.path = path, .device_index = 1)));
  CHECK_ABOUT("device_index");
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_model_open(&model, SOURCE(.path = path, .dtype = 99)));
  CHECK_ABOUT("dtype");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_open(&model, SOURCE(.path = path, .content = path)));
  CHECK_ABOUT("content");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_open(&graph, SOURCE(.path = path, .dtype = NEML2_FLOAT64)));
  CHECK_ABOUT("dtype");
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_graph_open(&graph, SOURCE(.path = path, .name = "model")));
  CHECK_ABOUT("name");
  CHECK(!model && !graph);
}

int main(void) {
  a_size_that_was_not_set_is_refused();
  a_field_of_a_later_release_is_refused_unless_it_is_0();
  a_field_that_does_not_fit_is_named();
  return CHECK_RESULT();
}
