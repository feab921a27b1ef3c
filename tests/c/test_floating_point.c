/* A host that traps, rounds upwards and flushes to zero gets the same results, and its environment back. */
#define _GNU_SOURCE
#include <fenv.h>

#include "materials.h"
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

enum { N = 5, TRAPS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW };

static void run(neml2_call *call, viscoplastic_block *b, int k, int32_t expected) {
  viscoplastic_load(b, k);
  CHECK_STATUS(expected, neml2_call_run(call, b->n));
}

static void the_environment_is_the_hosts_again(const char *elasticity, const char *viscoplastic) {
  neml2_model *model = load(viscoplastic), *elastic = NULL;
  viscoplastic_block plain = viscoplastic_after(model, N, 4), trapped = viscoplastic_after(model, N, 4);
  neml2_call *call = viscoplastic_call(model, &plain, 0), *trapped_call = viscoplastic_call(model, &trapped, 0);
  run(call, &plain, 5, NEML2_OK);
  viscoplastic_load(&trapped, 5);

  feclearexcept(FE_ALL_EXCEPT);
  fesetround(FE_UPWARD);
#ifdef __x86_64__
  _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
  const unsigned flush = _mm_getcsr() & 0x8040;
#endif
  feenableexcept(TRAPS);
  const int traps = fegetexcept();

  const int32_t status = neml2_call_run(trapped_call, N);
  const int32_t loaded = neml2_model_open(&elastic, SOURCE(.path = elasticity));

  const int traps_after = fegetexcept(), rounding_after = fegetround(), flags_after = fetestexcept(FE_ALL_EXCEPT);
#ifdef __x86_64__
  const unsigned flush_after = _mm_getcsr() & 0x8040;
#endif
  fesetenv(FE_DFL_ENV);

  CHECK(status == NEML2_OK && loaded == NEML2_OK);
  CHECK(traps_after == traps && rounding_after == FE_UPWARD && flags_after == 0);
#ifdef __x86_64__
  CHECK(flush_after == flush);
#endif
  CHECK_SAME(STATE_SIZE * N, trapped.state, plain.state);
  CHECK_ELASTICITY(elastic);
  neml2_call_free(&call);
  neml2_call_free(&trapped_call);
  viscoplastic_free(&plain);
  viscoplastic_free(&trapped);
  neml2_model_free(&elastic);
  neml2_model_free(&model);
}

/* NaN and numbers whose powers overflow reach the packages while the host traps. */
static void what_overflows_is_reported_and_does_not_trap(const char *viscoplastic) {
  neml2_model *model = load(viscoplastic);
  viscoplastic_block b = viscoplastic_create(3);
  neml2_call *call = viscoplastic_call(model, &b, 0);
  viscoplastic_load(&b, 5);
  b.strain[0] = 1e200;
  b.strain[6] = NAN;
  feenableexcept(TRAPS);
  const int32_t status = neml2_call_run(call, 3);
  fesetenv(FE_DFL_ENV);
  CHECK(status >= NEML2_NOT_CONVERGED);
  CHECK(b.status[0] != NEML2_OK && b.status[1] != NEML2_OK && b.status[2] == NEML2_OK);
  neml2_call_free(&call);
  viscoplastic_free(&b);
  neml2_model_free(&model);
}

int main(void) {
  the_environment_is_the_hosts_again(artifact("elasticity"), artifact("viscoplastic"));
  what_overflows_is_reported_and_does_not_trap(artifact("viscoplastic"));
  return CHECK_RESULT();
}
