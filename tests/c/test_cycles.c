/* Loading, running and freeing a model again and again leaves nothing behind.
 *   test_cycles [ARTIFACT [CYCLES]]
 *
 * Mappings and file descriptors after CYCLES cycles (1000, of elasticity, unless given) equal those after 100. So does
 * the resident memory, except for what the allocator keeps: it returns freed memory to the system in blocks, and the
 * caches of its size classes fill for some time. 1 MiB is allowed for that, which is 100 bytes per cycle at 10,000
 * cycles. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <unistd.h>

#include "materials.h"

enum { WARM_UP = 100, PERMITTED_KIB = 1024 };

typedef struct {
  int64_t mappings, descriptors, resident_kib;
} footprint;

static footprint measure(void) {
  footprint f = {0, 0, 0};
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) exit(2);
  for (int c; (c = fgetc(maps)) != EOF;) f.mappings += c == '\n';
  fclose(maps);

  DIR *descriptors = opendir("/proc/self/fd");
  if (!descriptors) exit(2);
  while (readdir(descriptors)) ++f.descriptors;
  closedir(descriptors);

  long long pages = 0;
  FILE *memory = fopen("/proc/self/statm", "r");
  if (!memory || fscanf(memory, "%*d %lld", &pages) != 1) exit(2);
  fclose(memory);
  f.resident_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
  return f;
}

/* Every input is the same small number at two points. */
static void cycle(const char *root) {
  static double value[64], results[8][128];
  neml2_model *model = NULL;
  neml2_call *call = NULL;
  int64_t inputs = 0, outputs = 0;
  for (int i = 0; i < 64; ++i) value[i] = 1e-5 * (i + 1);
  REQUIRE_OK(neml2_model_open(&model, SOURCE(.path = root)));
  REQUIRE_OK(neml2_call_create(&call, model));
  REQUIRE_OK(neml2_model_variable_count(&inputs, model, NEML2_INPUT));
  REQUIRE_OK(neml2_model_variable_count(&outputs, model, NEML2_OUTPUT));
  for (int64_t i = 0; i < inputs; ++i) {
    static double now = 1, before = 0;
    const char *name = NULL;
    name = variable_info(model, NEML2_INPUT, i).name;
    double *data = strcmp(name, "t") == 0 ? &now : strstr(name, "~1") ? value + 32 : value;
    if (strcmp(name, "t~1") == 0) data = &before;
    REQUIRE_OK(neml2_call_bind(call, NEML2_INPUT, name, data, NEML2_FLOAT64, 0));
  }
  for (int64_t i = 0; i < outputs && i < 8; ++i) {
    const char *name = NULL;
    name = variable_info(model, NEML2_OUTPUT, i).name;
    REQUIRE_OK(neml2_call_bind(call, NEML2_OUTPUT, name, results[i], NEML2_FLOAT64, 64));
  }
  CHECK(neml2_call_run(call, 2) >= 0);
  CHECK(neml2_call_bind(call, NEML2_INPUT, "nothing", value, NEML2_FLOAT64, 0) ==
        NEML2_ERROR_NAME); /* errors leak neither */
  neml2_call_free(&call);
  neml2_model_free(&model);
}

int main(int argc, char **argv) {
  const char *root = argc > 1 ? argv[1] : artifact("elasticity");
  const long cycles = argc > 2 ? atol(argv[2]) : 1000;
  for (int i = 0; i < WARM_UP; ++i) cycle(root);
  const footprint before = measure();
  for (long i = WARM_UP; i < cycles; ++i) cycle(root);
  const footprint after = measure();

  printf("after %8d cycles: %lld mappings, %lld descriptors, %lld KiB\n", WARM_UP, (long long)before.mappings,
         (long long)before.descriptors, (long long)before.resident_kib);
  printf("after %8ld cycles: %lld mappings, %lld descriptors, %lld KiB\n", cycles, (long long)after.mappings,
         (long long)after.descriptors, (long long)after.resident_kib);
  CHECK(after.mappings == before.mappings);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.resident_kib <= before.resident_kib + PERMITTED_KIB);
  return CHECK_RESULT();
}
