/* Calls umat_ of each library that the arguments name, once, as a host does that knows nothing else of it, and counts the
   properties of its generic behaviour. CMNAME is blank, or what stands before a colon. */
#include <stdio.h>
#include <string.h>
#if defined(_WIN32)
#include <windows.h>
#define RTLD_NOW 0
#define RTLD_GLOBAL 0
static void *dlopen(const char *name, int how) { return how == 0 ? (void *)LoadLibraryA(name) : NULL; }
static void *dlsym(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }
static const char *dlerror(void) { return "the library, or a function of it, cannot be loaded"; }
#else
#include <dlfcn.h>
#endif

typedef void umat_function(double *stress, double *statev, double *ddsdde, double *sse, double *spd, double *scd,
                           double *rpl, double *ddsddt, double *drplde, double *drpldt, const double *stran,
                           const double *dstran, const double *time, const double *dtime, const double *temp,
                           const double *dtemp, const double *predef, const double *dpred, const char *cmname,
                           const int *ndi, const int *nshr, const int *ntens, const int *nstatv, const double *props,
                           const int *nprops, const double *coords, const double *drot, double *pnewdt,
                           const double *celent, const double *dfgrd0, const double *dfgrd1, const int *noel,
                           const int *npt, const int *layer, const int *kspt, const int *jstep, const int *kinc,
                           size_t length_of_cmname);

static void print(const char *name, const double *values, int count) {
  printf("%s", name);
  for (int i = 0; i < count; ++i) printf(" %.17g", values[i]);
  printf("\n");
}

static int call(const char *argument) {
  static const double stran[6], none[36], time[2], dtime = 1, props[2] = {200e3, 150};
  static const double dstran[6] = {4e-3, -1e-3, -2e-3, 3e-3, -5e-3, 2e-3}, drot[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  static const int ndi = 3, nshr = 3, ntens = 6, nstatv = 13, one = 1, jstep[4] = {1, 1, 1, 1};
  double stress[6] = {0}, statev[13] = {0}, ddsdde[36], unused[36] = {0}, pnewdt = 1;
  const char *colon = strchr(argument, ':'), *name = colon ? colon + 1 : argument;
  const int nprops = strstr(argument, "LASTICITY:") || strstr(argument, "lasticity:") ? 1 : 2; /* it has E alone */
  char cmname[80];
  void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  void *found = library ? dlsym(library, "umat_") : NULL;
  const unsigned short *properties = library ? dlsym(library, "NEML2_nMaterialProperties") : NULL;
  umat_function *umat;
  if (!found || !properties) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  memcpy(&umat, &found, sizeof umat);
  memset(cmname, ' ', sizeof cmname);
  if (colon) memcpy(cmname, argument, (size_t)(colon - argument));
  umat(stress, statev, ddsdde, unused, unused, unused, unused, unused, unused, unused, stran, dstran, time, &dtime,
       none, none, none, none, cmname, &ndi, &nshr, &ntens, &nstatv, props, &nprops, none, drot, &pnewdt, none, none,
       none, &one, &one, &one, &one, jstep, &one, sizeof cmname);
  print("stress", stress, 6);
  print("ddsdde", ddsdde, 36);
  print("statev", statev, 13);
  if (pnewdt != 1) print("pnewdt", &pnewdt, 1);
  printf("properties %d\n", *properties);
  return 0;
}

int main(int argc, char **argv) {
  int status = 0;
  for (int i = 1; i < argc && !status; ++i) status = call(argv[i]);
  return status;
}
