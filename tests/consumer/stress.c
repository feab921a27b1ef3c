/* Print the stress of an elastic model for one strain. */
#include <neml2_capi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  double strain[6] = {1e-3, -3e-4, -2.5e-4, 1e-4, -2e-4, 5e-5}; /* Mandel notation */
  double stress[6];
  neml2_source source = {.size = sizeof source, .path = argc == 2 ? argv[1] : ""};
  neml2_model *model = NULL;
  neml2_call *call = NULL;

  int32_t status = neml2_model_open(&model, &source);
  if (status == NEML2_OK) status = neml2_call_create(&call, model);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
  if (status == NEML2_OK) status = neml2_call_run(call, 1);

  if (status == NEML2_OK) {
    for (int i = 0; i < 6; ++i) printf("%.17g\n", stress[i]);
  } else {
    char message[1024];
    neml2_error_message(message, sizeof message, NULL);
    fprintf(stderr, "%s\n", message);
  }
  neml2_call_free(&call);
  neml2_model_free(&model);
  return status != NEML2_OK;
}
