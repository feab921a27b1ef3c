/* Solver options: listed, bounded, and set by name. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"
#include "materials.h"

static void every_option_is_listed_and_bounded(neml2_model *model) {
  const char *const expected[] = {"atol",       "rtol",    "miters",          "ls_type",     "ls_max_iters",
                                  "ls_cutback", "ls_c",    "substep_del_tol", "convergence", "chunk",
                                  "threads",    "capsule", "kernels",         "rescue",      "bounds"};
  int found[15] = {0};
  int64_t count = 0;
  CHECK_OK(neml2_model_option_count(&count, model));
  for (int64_t i = 0; i < count; ++i) {
    const char *name = "", *choices = NULL;
    double least = 0, greatest = 0, value = 0, after = 0;
    name = option_info(model, i).name;
    least = option_info(model, i).least;
    greatest = option_info(model, i).greatest;
    choices = option_info(model, i).choices;
    for (int k = 0; k < 15; ++k) found[k] |= strcmp(name, expected[k]) == 0;
    if (choices) {
      const char *text = NULL;
      CHECK_OK(neml2_model_option_get_text(&text, model, name));
      CHECK(text && (strcmp(choices, "*") == 0 || strstr(choices, text)));
      CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_set_number(model, name, 1));
      CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_get_number(&value, model, name));
      if (strcmp(choices, "*") == 0) continue; /* any text will do */
      CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_set_text(model, name, "nonsense"));
      CHECK_ABOUT(name);
      CHECK_SAYS("nonsense");
      continue;
    }
    CHECK(least < greatest);
    CHECK_OK(neml2_model_option_get_number(&value, model, name));
    CHECK(least <= value && value <= greatest);
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_set_number(model, name, least - 1));
    CHECK_ABOUT(name);
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_set_number(model, name, NAN));
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_set_text(model, name, "1"));
    CHECK_OK(neml2_model_option_get_number(&after, model, name));
    CHECK(after == value);
    CHECK_OK(neml2_model_option_set_number(model, name, least));
    CHECK_OK(neml2_model_option_get_number(&after, model, name));
    CHECK(after == least);
    CHECK_OK(neml2_model_option_set_number(model, name, value));
  }
  for (int k = 0; k < 15; ++k) CHECK(found[k]);
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_inspect(INFO(neml2_option_info), model, count));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_inspect(INFO(neml2_option_info), model, -1));
}

static void counts_are_whole_numbers(neml2_model *model) {
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_model_option_set_number(model, "miters", 2.5));
  CHECK_ABOUT("miters");
}

static void unknown_option_is_named(neml2_model *model) {
  double value = 7;
  const char *text = "kept";
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_option_set_number(model, "tolerance", 1));
  CHECK_SAYS("tolerance");
  CHECK_SAYS("atol"); /* the names there are */
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_option_get_number(&value, model, "tolerance"));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_option_set_text(model, "tolerance", "1"));
  CHECK_STATUS(NEML2_ERROR_NAME, neml2_model_option_get_text(&text, model, "tolerance"));
  CHECK(value == 7 && strcmp(text, "kept") == 0);
}

/* The values that the artifact's metadata records are where the model starts. */
static void the_artifact_sets_the_start(neml2_model *model) {
  const char *const names[] = {"atol", "rtol", "miters", "ls_max_iters", "ls_cutback", "ls_c", "substep_del_tol"};
  size_t size;
  char *metadata = read_bytes(join_path(artifact("viscoplastic"), "metadata.json"), &size);
  for (int i = 0; i < 7; ++i) {
    char key[64];
    double value = 0;
    snprintf(key, sizeof key, "\"%s\":", names[i]);
    const char *recorded = strstr(metadata, key);
    CHECK(recorded);
    CHECK_OK(neml2_model_option_get_number(&value, model, names[i]));
    CHECK(recorded && value == atof(recorded + strlen(key)));
  }
  free(metadata);
}

/* With one Newton step allowed nothing plastic converges; the option takes effect in calls that exist. */
static void options_take_effect(neml2_model *model) {
  viscoplastic_block b = viscoplastic_create(2);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  double miters = 0;
  viscoplastic_load(&b, 5);
  CHECK_OK(neml2_model_option_get_number(&miters, model, "miters"));
  CHECK_OK(neml2_model_option_set_number(model, "miters", 2));
  CHECK_STATUS(NEML2_NOT_CONVERGED, neml2_call_run(call, 2));
  for (int p = 0; p < 2; ++p) {
    CHECK(b.status[p] == NEML2_NOT_CONVERGED);
    CHECK(b.iterations[p] == 1);
    CHECK(b.residual_norm[p] > 0);
  }
  for (int i = 0; i < 2 * STATE_SIZE; ++i) CHECK(b.state[i] == 0); /* not written */
  CHECK_OK(neml2_model_option_set_number(model, "miters", miters));
  CHECK_OK(neml2_call_run(call, 2));
  CHECK(b.iterations[0] > 1);
  neml2_call_free(&call);
  viscoplastic_free(&b);
}

int main(void) {
  neml2_model *model = load(artifact("viscoplastic"));
  the_artifact_sets_the_start(model);
  every_option_is_listed_and_bounded(model);
  counts_are_whole_numbers(model);
  unknown_option_is_named(model);
  options_take_effect(model);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
