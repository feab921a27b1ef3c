/* The OpenCL of this machine, of which a function fails when it is told to. It is linked with the loader, which serves all
   others. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const char *failing = "";
static int status = 0;

/* Lets the next call of a function fail. */
void fail(const char *function, int with) {
  failing = function;
  status = with;
}

static int fails(const char *function) {
  if (strcmp(function, failing) != 0) return 0;
  failing = "";
  return status;
}

#define FORWARD(name, parameters, arguments)                            \
  int name parameters;                                                  \
  int name parameters {                                                 \
    const int failed = fails(#name);                                    \
    int(*real) parameters = (int(*) parameters)dlsym(RTLD_NEXT, #name); \
    return failed ? failed : real arguments;                            \
  }

FORWARD(clEnqueueWriteBuffer,
        (void *q, void *m, unsigned b, size_t o, size_t n, const void *p, unsigned c, void *const *w, void **e),
        (q, m, b, o, n, p, c, w, e))
FORWARD(clEnqueueReadBuffer,
        (void *q, void *m, unsigned b, size_t o, size_t n, void *p, unsigned c, void *const *w, void **e),
        (q, m, b, o, n, p, c, w, e))
FORWARD(clEnqueueNDRangeKernel,
        (void *q, void *k, unsigned d, const size_t *o, const size_t *g, const size_t *l, unsigned c, void *const *w,
         void **e),
        (q, k, d, o, g, l, c, w, e))
FORWARD(clEnqueueMarkerWithWaitList, (void *q, unsigned c, void *const *w, void **e), (q, c, w, e))
FORWARD(clSetKernelArg, (void *k, unsigned i, size_t n, const void *p), (k, i, n, p))
FORWARD(clFlush, (void *q), (q))

/* A wait ends before it tells. */
int clWaitForEvents(unsigned count, void *const *events);
int clWaitForEvents(unsigned count, void *const *events) {
  int (*real)(unsigned, void *const *) = (int (*)(unsigned, void *const *))dlsym(RTLD_NEXT, "clWaitForEvents");
  const int done = real(count, events), failed = fails("clWaitForEvents");
  return failed ? failed : done;
}

/* A kernel has this status. */
int clGetEventInfo(void *event, unsigned what, size_t size, void *value, size_t *needed);
int clGetEventInfo(void *event, unsigned what, size_t size, void *value, size_t *needed) {
  int (*real)(void *, unsigned, size_t, void *, size_t *) =
      (int (*)(void *, unsigned, size_t, void *, size_t *))dlsym(RTLD_NEXT, "clGetEventInfo");
  const int found = real(event, what, size, value, needed), failed = fails("clGetEventInfo");
  if (failed && value && size >= sizeof failed) memcpy(value, &failed, sizeof failed);
  return found;
}

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int *told);
void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int *told) {
  void *(*real)(void *, uint64_t, size_t, void *, int *) =
      (void *(*)(void *, uint64_t, size_t, void *, int *))dlsym(RTLD_NEXT, "clCreateBuffer");
  const int failed = fails("clCreateBuffer");
  if (!failed) return real(context, flags, size, host, told);
  if (told) *told = failed;
  return NULL;
}
