/* A host ends a long evaluation by the function that the library asks. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "materials.h"

enum { N = 5000 }; /* more than is walked at a time */

typedef struct {
  int32_t answer;
  int64_t times;
} host;

static int32_t asked(void *context) {
  host *own = context;
  ++own->times;
  return own->answer;
}

static void an_evaluation_ends(neml2_model *model, int32_t answer, int32_t cause) {
  host own = {answer, 0};
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  viscoplastic_load(&b, 5);
  CHECK_OK(neml2_interrupt_set(asked, &own));
  CHECK_STATUS(NEML2_ERROR_INTERRUPTED, neml2_call_run(call, N));
  CHECK(neml2_error_cause() == cause && own.times == 1);
  CHECK_SAYS("evaluate again");

  own.answer = 0;
  CHECK_OK(neml2_call_run(call, N));
  CHECK_OK(neml2_interrupt_set(NULL, NULL));
  const int64_t times = own.times;
  CHECK_OK(neml2_call_run(call, N));
  CHECK(own.times == times);

  viscoplastic_block other = viscoplastic_create(N);
  neml2_call *whole = viscoplastic_call(model, &other, 0);
  viscoplastic_load(&other, 5);
  CHECK_OK(neml2_call_run(whole, N));
  CHECK(memcmp(b.strain, other.strain, sizeof(double) * 6 * N) == 0);
  CHECK(memcmp(b.state, other.state, sizeof(double) * STATE_SIZE * N) == 0);
  neml2_call_free(&whole);
  neml2_call_free(&call);
  viscoplastic_free(&other);
  viscoplastic_free(&b);
}

/* The library asks ten times a second at most, on each thread: the second evaluation asks again after a while. */
static void wait_until_it_asks_again(void) {
  struct timespec pause = {0, 150000000};
  nanosleep(&pause, NULL);
}

int main(void) {
  neml2_model *model = load(artifact("viscoplastic"));
  an_evaluation_ends(model, 1, NEML2_CAUSE_NONE);
  wait_until_it_asks_again();
  CHECK_OK(neml2_model_option_set_number(model, "threads", 1));
  an_evaluation_ends(model, NEML2_CAUSE_OF_HOST + 7, NEML2_CAUSE_OF_HOST + 7);
  wait_until_it_asks_again();
  CHECK_OK(neml2_model_option_set_text(model, "kernels", "off"));
  an_evaluation_ends(model, 1, NEML2_CAUSE_NONE);
  neml2_model_free(&model);
  return CHECK_RESULT();
}
