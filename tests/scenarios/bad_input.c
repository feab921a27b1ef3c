/* Wrong requests: each is refused with its subject, and leaves the model as it was. */
#include "scenario.h"

static void refused(const neml2_model *model, int32_t expected, int32_t status) {
  CHECK_STATUS(expected, status);
  printf("error %d %s\n", (int)status, check_subject());
  CHECK_ELASTICITY(model);
}

int main(void) {
  scenario_begin();
  neml2_model *model = load(artifact("elasticity")), *nothing = NULL;
  neml2_call *call = NULL, *without_input = NULL;
  double strain[6], stress[6] = {0}, expected[6], one = 1;
  elastic_strains(1, strain);
  hooke(1, YOUNG, strain, expected);
  REQUIRE_OK(neml2_call_create(&call, model));
  REQUIRE_OK(neml2_call_create(&without_input, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  CHECK_OK(neml2_call_bind(without_input, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  neml2_tensor *value = tensor_over(&one, 0, NULL);

  refused(model, NEML2_ERROR_NAME, neml2_call_bind(call, NEML2_INPUT, "strian", strain, NEML2_FLOAT64, 6));
  CHECK_SAYS("no input 'strian'; did you mean 'strain'?");
  refused(model, NEML2_ERROR_DTYPE, neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT32, 6));
  refused(model, NEML2_ERROR_SHAPE, neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 5));
  refused(model, NEML2_ERROR_MISSING, neml2_call_run(without_input, 1));
  refused(model, NEML2_ERROR_ARGUMENT, neml2_model_option_set_number(model, "chunk", -1));
  refused(model, NEML2_ERROR_NAME, neml2_model_parameter_set(model, "elasticity.nu", value));
  refused(model, NEML2_ERROR_FILE, neml2_model_open(&nothing, SOURCE(.path = "/nothing/here")));

  CHECK(nothing == NULL && stress[0] == 0); /* what was refused wrote nothing */
  CHECK_OK(neml2_call_run(call, 1));        /* and changed nothing that was bound */
  CHECK_NEAR(6, stress, expected, 1e-12);

  neml2_tensor_free(&value);
  neml2_call_free(&without_input);
  neml2_call_free(&call);
  neml2_model_free(&model);
  return scenario_end();
}
