/* Loads the generic behaviour of the library that the argument names as MGIS does: tables first, then one call. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  const double *gradients, *forces, *mass_density, *properties, *states, *stored, *dissipated, *external;
} initial_state;

typedef struct {
  const double *gradients;
  double *forces;
  const double *mass_density, *properties;
  double *states, *stored, *dissipated;
  const double *external;
} state;

typedef struct {
  char *error_message;
  double dt;
  double *K, *rdt, *speed_of_sound;
  initial_state s0;
  state s1;
} data_view;

static void *library;

static void *symbol(const char *name) {
  char full[200];
  void *found;
  snprintf(full, sizeof full, "NEML2_%s", name);
  found = dlsym(library, full);
  if (!found) fprintf(stderr, "no %s\n", full);
  return found;
}

static int count(const char *name) { return *(const unsigned short *)symbol(name); }

static void print(const char *name, const double *values, int number) {
  printf("%s", name);
  for (int i = 0; i < number; ++i) printf(" %.17g", values[i]);
  printf("\n");
}

static void print_table(const char *name, const char *number, const char *types) {
  const char *const *names = symbol(name);
  printf("# %s", name);
  for (int i = 0; i < count(number); ++i) {
    printf(" %s", names[i]);
    if (types) printf(":%d", ((const int *)symbol(types))[i]);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  static const double root = 1.4142135623730951, none[20];
  const double none6[6] = {0}, strain[6] = {4e-3, -1e-3, -2e-3, 3e-3 / root, -5e-3 / root, 2e-3 / root};
  const double properties[2] = {200e3, 150};
  double stress[6] = {0}, states[13] = {0}, K[36], rdt = 1, scale = argc > 2 ? 1e60 : 1, large[6];
  char message[512] = "";
  data_view data;
  int (*integrate)(data_view *), status;
  void *function;
  library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  function = library ? symbol("Tridimensional") : NULL;
  if (!function) return 2;
  memcpy(&integrate, &function, sizeof integrate);
  print_table("MaterialProperties", "nMaterialProperties", NULL);
  print_table("InternalStateVariables", "nInternalStateVariables", "InternalStateVariablesTypes");
  print_table("ExternalStateVariables", "nExternalStateVariables", NULL);
  print_table("TangentOperatorBlocks", "nTangentOperatorBlocks", NULL);
  printf("# kind %d %d %d\n", count("mfront_mkt"), count("api_version"), count("BehaviourType"));

  memset(&data, 0, sizeof data);
  data.error_message = message;
  data.dt = 1;
  data.K = K;
  data.rdt = &rdt;
  for (int i = 0; i < 6; ++i) large[i] = scale * strain[i];
  data.s0 = (initial_state){none6, none6, none, properties, none, NULL, NULL, none};
  data.s1 = (state){large, stress, none, properties, states, NULL, NULL, none};
  K[0] = -1;
  status = integrate(&data);
  print("prediction", K, 36);
  K[0] = 4;
  status = integrate(&data);
  printf("# %d %s\n", status, message);
  print("rdt", &rdt, 1);
  print("stress", stress, 6);
  print("K", K, 36);
  print("states", states, 13);
  return 0;
}
