/* A program of a later release, which calls old functions with new things: prints what the library says of each. */
#include <stdio.h>
#include <stdlib.h>

#include "neml2_capi.h"

static void say(const char *what, int32_t status) {
  char message[1024] = "";
  if (status != NEML2_OK) neml2_error_message(message, sizeof message, NULL);
  printf("%s: %d %s\n", what, (int)status, message);
}

int main(int argc, char **argv) {
  neml2_source source = {.size = sizeof source, .path = argc > 1 ? argv[1] : "elasticity"};
  neml2_model_info info = {.size = sizeof info, .later = 5};
  neml2_model *model = NULL;
  source.later = 1;
  say("a field", neml2_model_open(&model, &source));
  neml2_model_free(&model);
  source.later = 0;
  say("no field", neml2_model_open(&model, &source));
  if (!model) return EXIT_FAILURE;
  say("inspect", neml2_model_inspect(&info, model));
  printf("told: %d\n", (int)info.later);
  say("an option", neml2_model_option_set_number(model, "later", 1));
  neml2_model_free(&model);
  return EXIT_SUCCESS;
}
