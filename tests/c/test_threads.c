/* One model, several threads: the same results as one after another, while another thread meets nothing but errors. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "materials.h"

enum { THREADS = 4, N = 40, STEPS = 10 };

typedef struct {
  const neml2_model *model;
  double *state; /* of all points after every step */
} history;

/* Bitwise comparable: no CHECK in here, which is not for several threads. */
static void *run_history(void *argument) {
  history *h = argument;
  viscoplastic_block b = viscoplastic_create(N);
  neml2_call *call = viscoplastic_call(h->model, &b, 0);
  for (int k = 1; k <= STEPS; ++k) {
    viscoplastic_load(&b, k);
    if (neml2_call_run(call, N) != NEML2_OK) b.state[0] = NAN;
    memcpy(h->state + (k - 1) * STATE_SIZE * N, b.state, STATE_SIZE * N * sizeof(double));
    viscoplastic_accept(&b);
  }
  neml2_call_free(&call);
  viscoplastic_free(&b);
  return NULL;
}

typedef struct {
  const neml2_model *model;
  int *stop;
  int64_t runs, wrong;
} failing;

/* Nothing but errors, each of which must be this thread's own. */
static void *fail_again_and_again(void *argument) {
  failing *f = argument;
  viscoplastic_block b = viscoplastic_create(2);
  neml2_call *call = viscoplastic_call(f->model, &b, 0);
  viscoplastic_load(&b, 5);
  b.strain[0] = b.strain[6] = 1e200;
  do {
    char subject[64] = "";
    if (neml2_call_run(call, 2) < NEML2_NOT_CONVERGED) ++f->wrong;
    if (neml2_call_bind(call, NEML2_INPUT, "nothing", b.strain, NEML2_FLOAT64, 6) != NEML2_ERROR_NAME) ++f->wrong;
    neml2_error_subject(subject, sizeof subject, NULL);
    if (strcmp(subject, "nothing") != 0) ++f->wrong;
    ++f->runs;
  } while (!__atomic_load_n(f->stop, __ATOMIC_RELAXED));
  neml2_call_free(&call);
  viscoplastic_free(&b);
  return NULL;
}

static void threads_agree_with_one(const neml2_model *model) {
  enum { SIZE = STEPS * STATE_SIZE * N };
  int stop = 0;
  history alone = {model, doubles(SIZE)}, shared[THREADS];
  failing f = {model, &stop, 0, 0};
  pthread_t threads[THREADS], failing_thread;

  run_history(&alone);
  CHECK(!isnan(alone.state[0]));
  pthread_create(&failing_thread, NULL, fail_again_and_again, &f);
  for (int i = 0; i < THREADS; ++i) {
    shared[i] = (history){model, doubles(SIZE)};
    pthread_create(&threads[i], NULL, run_history, &shared[i]);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(failing_thread, NULL);

  CHECK(f.runs > 0 && f.wrong == 0);
  CHECK(neml2_error_status() == NEML2_OK); /* errors are kept per thread */
  for (int i = 0; i < THREADS; ++i) {
    CHECK_SAME(SIZE, shared[i].state, alone.state);
    free(shared[i].state);
  }
  free(alone.state);
}

typedef struct {
  const neml2_model *model;
  int64_t neither;
} reader;

/* Every result belongs to one of two moduli as a whole. */
static void *see_one_modulus_or_the_other(void *argument) {
  enum { POINTS = 200 };
  reader *r = argument;
  double *strain = doubles(6 * POINTS), *stress = doubles(6 * POINTS), *soft = doubles(6 * POINTS);
  neml2_call *call = NULL;
  some_strains(POINTS, strain);
  hooke(POINTS, 100e3, strain, soft);
  neml2_call_create(&call, r->model);
  neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
  neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
  for (int run = 0; run < 500; ++run) {
    if (neml2_call_run(call, POINTS) != NEML2_OK) ++r->neither;
    const double scale = stress[0] / soft[0] > 1.5 ? 2 : 1;
    for (int i = 0; i < 6 * POINTS; ++i) r->neither += !(fabs(stress[i] - scale * soft[i]) <= 1e-9 * fabs(soft[0]));
  }
  neml2_call_free(&call);
  free(strain);
  free(stress);
  free(soft);
  return NULL;
}

static void setting_a_parameter_is_atomic(neml2_model *model) {
  const double moduli[2] = {100e3, YOUNG};
  neml2_tensor *values[2] = {tensor_over(&moduli[0], 0, NULL), tensor_over(&moduli[1], 0, NULL)};
  reader readers[2] = {{model, 0}, {model, 0}};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, see_one_modulus_or_the_other, &readers[i]);
  for (int k = 0; k < 2000; ++k) CHECK_OK(neml2_model_parameter_set(model, "elasticity.E", values[k % 2]));
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
    CHECK(readers[i].neither == 0);
    neml2_tensor_free(&values[i]);
  }
  CHECK_ELASTICITY(model);
}

int main(void) {
  neml2_model *elasticity = load(artifact("elasticity")), *viscoplastic = load(artifact("viscoplastic"));
  threads_agree_with_one(viscoplastic);
  setting_a_parameter_is_atomic(elasticity);
  neml2_model_free(&elasticity);
  neml2_model_free(&viscoplastic);
  return CHECK_RESULT();
}
