/* Elasticity of eight points, once: one_strain ARTIFACT. test_walks.py looks at what the library calls. */
#include <neml2_capi.h>
#include <stddef.h>

int main(int count, char **arguments) {
  neml2_source source = {.size = sizeof source, .path = arguments[count - 1]};
  neml2_model *model = NULL;
  neml2_call *call = NULL;
  double strain[8][6] = {{1e-3, -3e-4, -3e-4, 0, 0, 0}}, stress[8][6];
  int32_t status = neml2_model_open(&model, &source);
  if (status == NEML2_OK) status = neml2_call_create(&call, model);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
  if (status == NEML2_OK) status = neml2_call_run(call, 8);
  neml2_call_free(&call);
  neml2_model_free(&model);
  return status != NEML2_OK;
}
