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

static int32_t asked_at_last(void *context) {
  host *own = context;
  return ++own->times > 1 ? own->answer : 0;
}

/* One value for all points, in and out: no array bounds their number, and an absurd one is refused. */
static void points_without_end_end(const char *kernels) {
  neml2_model *model = load(artifact("elasticity"));
  double strain[6] = {1e-3}, cotangent[6] = {1}, adjoint[6];
  host own = {1, 0};
  neml2_call *call = NULL;
  CHECK_OK(neml2_model_option_set_text(model, "kernels", kernels));
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_COTANGENT, "stress", cotangent, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_ADJOINT, "strain", adjoint, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_run(call, 3));
  const int64_t absurd[] = {INT64_MAX, INT64_MAX / 6, (int64_t)1 << 57};
  for (int i = 0; i < 3; ++i) {
    CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run(call, absurd[i]));
    CHECK_SAYS("Was the number of points set?");
  }
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 1000)); /* kernels take all at once, and their sums memory */
  CHECK_OK(neml2_interrupt_set(asked_at_last, &own));
  CHECK_STATUS(NEML2_ERROR_INTERRUPTED, neml2_call_run(call, (int64_t)1 << 50));
  CHECK_OK(neml2_interrupt_set(NULL, NULL));
  CHECK_OK(neml2_call_run(call, 3));
  neml2_call_free(&call);
  neml2_model_free(&model);
}

/* So it is with steps. */
static void steps_without_end_end(const char *kernels) {
  neml2_model *model = load(artifact("elasticity"));
  double strain[6] = {1e-3}, stress[6];
  host own = {1, 0};
  int64_t made = 7;
  neml2_call *call = NULL;
  CHECK_OK(neml2_model_option_set_text(model, "kernels", kernels));
  REQUIRE_OK(neml2_call_create(&call, model));
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 0));
  CHECK_OK(neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6));
  wait_until_it_asks_again();
  CHECK_OK(neml2_interrupt_set(asked_at_last, &own));
  CHECK_STATUS(NEML2_ERROR_INTERRUPTED, neml2_call_run_steps(&made, call, 1, (int64_t)1 << 50));
  CHECK_OK(neml2_interrupt_set(NULL, NULL));
  CHECK(made == 7 && own.times == 2);
  CHECK_OK(neml2_call_step_stride_set(call, NEML2_OUTPUT, "stress", 6));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_run_steps(&made, call, 1, INT64_MAX / 6));
  CHECK_SAYS("Was the number of steps set?");
  neml2_call_free(&call);
  neml2_model_free(&model);
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
  points_without_end_end("auto");
  points_without_end_end("off");
  steps_without_end_end("auto");
  steps_without_end_end("off");
  return CHECK_RESULT();
}
