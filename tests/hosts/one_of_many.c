/* One of many processes that open the same artifact at the same time.
 *   one_of_many RUNTIME
 *
 * It waits for a byte on its input, loads the model, runs a cycle, prints the states and stays until its input ends. */
#define _GNU_SOURCE
#include <unistd.h>

#include "../scenarios/scenario.h"

enum { N = 8, STEPS = 5 };

int main(int argc, char **argv) {
  char byte;
  neml2_model *model = NULL;
  if (argc != 2 || read(STDIN_FILENO, &byte, 1) != 1) return 2;
  const int32_t runtime = strcmp(argv[1], "libtorch") == 0 ? NEML2_RUNTIME_LIBTORCH : NEML2_RUNTIME_BUILTIN;
  REQUIRE_OK(neml2_model_open(&model, SOURCE(.path = artifact("viscoplastic"), .runtime = runtime)));

  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  for (int k = 1; k <= STEPS; ++k) {
    cycle_load(&b, 0, k);
    CHECK_OK(neml2_call_run(call, N));
    viscoplastic_accept(&b);
  }
  print_points("state", N, STATE_SIZE, STATE_SIZE, b.state);
  fflush(stdout);

  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  neml2_call_free(&call);
  viscoplastic_free(&b);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
