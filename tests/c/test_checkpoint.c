/* A state in a file: a run that is continued is the one that was not stopped, and no other file is taken. */
#define _POSIX_C_SOURCE 200809L
#include "files.h"
#include "materials.h"

enum { N = 7, STEPS = 12 };

static const char *path; /* of the state */

static neml2_call *call_of(neml2_model *model, viscoplastic_block *block) { return viscoplastic_call(model, block, 0); }

/* Steps of a bar of points, each with a strain of its own. */
static void advance(neml2_call *call, viscoplastic_block *block, int step) {
  viscoplastic_load(block, step);
  CHECK_OK(neml2_call_run(call, N));
  viscoplastic_accept(block);
}

static void a_run_that_is_continued_has_the_same_bits(void) {
  neml2_model *model = load(artifact("viscoplastic"));
  viscoplastic_block whole = viscoplastic_create(N), part = viscoplastic_create(N);
  neml2_call *call = call_of(model, &whole), *continued = call_of(model, &part);
  for (int step = 1; step <= STEPS; ++step) {
    advance(call, &whole, step);
    advance(continued, &part, step);
    if (step % 3 != 0) continue;
    /* Another program: a model and arrays of its own. */
    int64_t reached = 0;
    double time = 0;
    CHECK_OK(neml2_call_state_save(continued, path, N, step, part.old_time));
    neml2_call_free(&continued);
    neml2_model_free(&model);
    viscoplastic_free(&part);
    model = load(artifact("viscoplastic"));
    part = viscoplastic_create(N);
    continued = call_of(model, &part);
    CHECK_OK(neml2_call_state_load(&reached, &time, continued, path, N));
    CHECK(reached == step && time == whole.old_time);
    CHECK_SAME(STATE_SIZE * N, part.old_state, whole.old_state);
    CHECK_SAME(6 * N, part.old_strain, whole.old_strain);
    CHECK_SAME(1, &part.old_time, &whole.old_time);
  }
  CHECK_SAME(STATE_SIZE * N, part.old_state, whole.state);
  CHECK(whole.state[6] > 1e-3); /* it did flow */
  CHECK_OK(neml2_call_state_load(NULL, NULL, continued, path, N));
  neml2_call_free(&call);
  neml2_call_free(&continued);
  neml2_model_free(&model);
  viscoplastic_free(&whole);
  viscoplastic_free(&part);
}

static void refuse(neml2_call *call, const viscoplastic_block *block, int32_t status, int64_t points) {
  int64_t step = -7;
  CHECK_STATUS(status, neml2_call_state_load(&step, NULL, call, path, points));
  CHECK(step == -7);
  for (int64_t i = 0; i < STATE_SIZE * block->n; ++i)
    if (block->old_state[i] != 5) CHECK(!"an array was written");
}

static void what_does_not_fit_is_refused_and_nothing_is_written(void) {
  neml2_model *model = load(artifact("viscoplastic")), *other = load(artifact("elasticity"));
  viscoplastic_block block = viscoplastic_after(model, N, 2);
  neml2_call *call = call_of(model, &block), *stateless = NULL;
  CHECK_OK(neml2_call_state_save(call, path, N, 2, 1.0));
  for (int64_t i = 0; i < STATE_SIZE * N; ++i) block.old_state[i] = 5;
  refuse(call, &block, NEML2_ERROR_SHAPE, N - 1);
  CHECK_SAYS("holds the state of 7 points; the call has 6");
  refuse(call, &block, NEML2_ERROR_ARGUMENT, -1);

  size_t size = 0;
  char *bytes = read_bytes(path, &size);
  for (size_t i = 0; i < size; i += i < 1200 ? 5 : 101) { /* the header, and some of the numbers */
    bytes[i] ^= 4;
    write_bytes(path, bytes, size);
    refuse(call, &block, NEML2_ERROR_FILE, N);
    bytes[i] ^= 4;
  }
  for (size_t end = 0; end < size; end += end < 40 ? 1 : size / 7) {
    write_bytes(path, bytes, end);
    refuse(call, &block, NEML2_ERROR_FILE, N);
  }
  CHECK_SAYS("damaged, truncated or no such file");
  write_bytes(path, bytes, size);
  free(bytes);

  /* A call of elasticity, which has no state. */
  CHECK_OK(neml2_call_create(&stateless, other));
  CHECK_STATUS(NEML2_ERROR_ARTIFACT, neml2_call_state_load(NULL, NULL, stateless, path, N));
  CHECK_SAYS("written with another artifact");
  CHECK_OK(neml2_call_state_save(stateless, path, N, 0, 0));
  refuse(call, &block, NEML2_ERROR_ARTIFACT, N);
  CHECK_OK(neml2_call_state_load(NULL, NULL, stateless, path, N));

  /* The file of before stays if another cannot be written. */
  CHECK_OK(neml2_call_bind(call, NEML2_INPUT, "X1~1", NULL, NEML2_FLOAT64, 0));
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_call_state_save(call, path, N, 0, 0));
  CHECK_ABOUT("X1~1");
  CHECK_STATUS(NEML2_ERROR_MISSING, neml2_call_state_load(NULL, NULL, call, path, N));
  CHECK_OK(neml2_call_state_load(NULL, NULL, stateless, path, N));
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_call_state_save(stateless, "/nowhere/run.state", N, 0, 0));
  CHECK_STATUS(NEML2_ERROR_FILE, neml2_call_state_load(NULL, NULL, stateless, "/nowhere/run.state", N));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_state_save(stateless, NULL, N, 0, 0));
  CHECK_STATUS(NEML2_ERROR_ARGUMENT, neml2_call_state_load(NULL, NULL, NULL, path, N));
  neml2_call_free(&call);
  neml2_call_free(&stateless);
  neml2_model_free(&model);
  neml2_model_free(&other);
  viscoplastic_free(&block);
}

int main(void) {
  char folder[] = "/tmp/neml2-checkpoint-XXXXXX";
  if (!mkdtemp(folder)) return EXIT_FAILURE;
  char name[64];
  snprintf(name, sizeof name, "%s/run.state", folder);
  path = name;
  a_run_that_is_continued_has_the_same_bits();
  what_does_not_fit_is_refused_and_nothing_is_written();
  remove(path);
  CHECK(rmdir(folder) == 0); /* nothing half written lies there */
  return CHECK_RESULT();
}
