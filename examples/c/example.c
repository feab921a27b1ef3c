/* Evaluate two compiled material models from C, as a finite-element program would.
 *
 *   example_c ELASTICITY_ROOT VISCOPLASTIC_ROOT
 *
 * The first has no state: strain in, stress out. The second integrates a viscoplastic law over one step, and shows what
 * a host does about it: state variables interleaved in one array, the values of the previous step (`x~1`) beside the
 * new ones (`x`), a status for each point, and a step that is cut if points did not converge.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "neml2_capi.h"

#define POINTS 3
#define STEPS 20

/* The state of one material point: stress, equivalent plastic strain and two back stresses, side by side. */
enum { STRESS = 0, PLASTIC_STRAIN = 6, X1 = 7, X2 = 13, STATE_SIZE = 19 };

/* Say what the library reports about its last error. */
static int failed(const char *what) {
  char message[1024];
  neml2_error_message(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s\n", what, message);
  return 1;
}

static void print_tensor(const double *tensor) {
  for (int i = 0; i < 6; ++i) printf(" %.17g", tensor[i]);
  printf("\n");
}

static int elasticity(const char *root) {
  /* Mandel notation: xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy */
  double strain[6] = {1e-3, -3e-4, -3e-4, 2e-4, -1e-4, 5e-5};
  double stress[6];
  neml2_source source = {.size = sizeof source, .path = root};
  neml2_model *model = NULL;
  neml2_call *call = NULL;

  int32_t status = neml2_model_open(&model, &source);
  if (status == NEML2_OK) status = neml2_call_create(&call, model);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
  if (status == NEML2_OK) status = neml2_call_run(call, 1);

  if (status != NEML2_OK) failed("elasticity");
  if (status == NEML2_OK) {
    printf("elasticity");
    print_tensor(stress);
  }
  neml2_call_free(&call);
  neml2_model_free(&model);
  return status != NEML2_OK;
}

/* The arrays of a block of material points. They are bound once: each run reads and writes them where they are. */
typedef struct {
  double time, old_time;
  double strain[POINTS][6], old_strain[POINTS][6];
  double state[POINTS][STATE_SIZE], old_state[POINTS][STATE_SIZE];
  int32_t status[POINTS];
} block;

static int32_t bind(neml2_call *call, block *b) {
  const struct {
    const char *name, *old_name;
    int offset;
  } state[] = {{"stress", "stress~1", STRESS},
               {"equivalent_plastic_strain", "equivalent_plastic_strain~1", PLASTIC_STRAIN},
               {"X1", "X1~1", X1},
               {"X2", "X2~1", X2}};

  /* A point stride of 0: one value for all points. */
  int32_t status = neml2_call_bind(call, NEML2_INPUT, "t", &b->time, NEML2_FLOAT64, 0);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "t~1", &b->old_time, NEML2_FLOAT64, 0);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain", b->strain, NEML2_FLOAT64, 6);
  if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain~1", b->old_strain, NEML2_FLOAT64, 6);

  /* From one point to the next it is a whole state, whatever the size of the variable. */
  for (int i = 0; i < 4 && status == NEML2_OK; ++i) {
    status = neml2_call_bind(call, NEML2_INPUT, state[i].old_name, b->old_state[0] + state[i].offset, NEML2_FLOAT64,
                             STATE_SIZE);
    if (status == NEML2_OK)
      status =
          neml2_call_bind(call, NEML2_OUTPUT, state[i].name, b->state[0] + state[i].offset, NEML2_FLOAT64, STATE_SIZE);
  }
  if (status == NEML2_OK) status = neml2_call_bind_report(call, NEML2_REPORT_STATUS, b->status, 1);
  return status;
}

/* Make the values of this step the previous ones. */
static void accept(block *b) {
  b->old_time = b->time;
  for (int p = 0; p < POINTS; ++p) {
    for (int i = 0; i < 6; ++i) b->old_strain[p][i] = b->strain[p][i];
    for (int i = 0; i < STATE_SIZE; ++i) b->old_state[p][i] = b->state[p][i];
  }
}

/* Bring all points to `time` and `strain`: at once if that converges, else in smaller steps. */
static int32_t advance(neml2_call *call, block *b, double time, double strain[POINTS][6]) {
  const double start = b->old_time;
  double from[POINTS][6];
  for (int p = 0; p < POINTS; ++p)
    for (int i = 0; i < 6; ++i) from[p][i] = b->old_strain[p][i];

  double done = 0, step = 1; /* fractions of the way */
  while (done < 1) {
    const double s = done + step;
    b->time = (1 - s) * start + s * time;
    for (int p = 0; p < POINTS; ++p)
      for (int i = 0; i < 6; ++i) b->strain[p][i] = (1 - s) * from[p][i] + s * strain[p][i];

    const int32_t status = neml2_call_run(call, POINTS);
    if (status < 0) return status;
    if (status > 0) {
      for (int p = 0; p < POINTS; ++p)
        if (b->status[p] != NEML2_OK) fprintf(stderr, "point %d: status %d\n", p, (int)b->status[p]);
      step /= 2;
      if (step < 1.0 / 1024) return status;
      continue;
    }
    accept(b);
    done = s;
    if (step > 1 - done) step = 1 - done;
  }
  return NEML2_OK;
}

static int viscoplasticity(const char *root) {
  const double pi = 3.14159265358979323846;
  const double amplitude[POINTS] = {1, 0.5, 0.25};
  static block b; /* all histories start from zero */
  neml2_source source = {.size = sizeof source, .path = root};
  neml2_model *model = NULL;
  neml2_call *call = NULL;

  int32_t status = neml2_model_open(&model, &source);
  if (status == NEML2_OK) status = neml2_call_create(&call, model);
  if (status == NEML2_OK) status = bind(call, &b);

  for (int k = 1; k <= STEPS && status == NEML2_OK; ++k) {
    double strain[POINTS][6] = {{0}};
    for (int p = 0; p < POINTS; ++p) {
      strain[p][0] = amplitude[p] * 0.01 * sin(2 * pi * k / STEPS);
      strain[p][1] = strain[p][2] = -0.3 * strain[p][0];
    }
    status = advance(call, &b, k, strain);
    if (status == NEML2_OK) {
      printf("viscoplastic %d", k);
      print_tensor(b.state[0] + STRESS);
    }
  }

  if (status != NEML2_OK) failed("viscoplasticity");
  neml2_call_free(&call);
  neml2_model_free(&model);
  return status != NEML2_OK;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s ELASTICITY_ROOT VISCOPLASTIC_ROOT\n", argv[0]);
    return 2;
  }
  return elasticity(argv[1]) || viscoplasticity(argv[2]);
}
