/* A thread with a small stack can load and evaluate: 64 kB, the least that the header promises. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "materials.h"

enum { ENOUGH = 64 << 10, MAPPED = 1 << 20, FILL = 0xa5 };

typedef struct {
  const char *root, *kernels;
} task;

static void *load_and_evaluate(void *argument) {
  const task *own = argument;
  neml2_model *model = NULL;
  if (!CHECK_OK(neml2_model_open(&model, SOURCE(.path = own->root)))) return NULL;
  CHECK_OK(neml2_model_option_set_text(model, "kernels", own->kernels));
  if (strstr(own->root, "viscoplastic")) {
    viscoplastic_block block = viscoplastic_after(model, 3, 2);
    viscoplastic_free(&block);
  } else {
    CHECK_ELASTICITY(model);
  }
  neml2_model_free(&model);
  return NULL;
}

/* The bytes of its stack that a thread has touched. */
static size_t stack_of(void *(*function)(void *), void *argument) {
  pthread_t thread;
  pthread_attr_t attributes;
  size_t untouched = 0;
  unsigned char *stack = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) exit(1);
  memset(stack, FILL, MAPPED);
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, MAPPED);
  if (pthread_create(&thread, &attributes, function, argument) != 0) exit(1);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  while (untouched < MAPPED && stack[untouched] == FILL) ++untouched;
  munmap(stack, MAPPED);
  return MAPPED - untouched;
}

int main(void) {
#ifdef __SANITIZE_ADDRESS__
  return 77; /* its frames are larger */
#endif
  const task tasks[] = {{artifact("elasticity"), "required"},
                        {artifact("elasticity"), "off"},
                        {artifact("viscoplastic"), "required"},
                        {artifact("viscoplastic"), "off"}};
  for (int i = 0; i < 4; ++i) {
    const size_t used = stack_of(load_and_evaluate, (void *)&tasks[i]);
    printf("%s, kernels %s: %zu bytes of stack\n", tasks[i].root, tasks[i].kernels, used);
    CHECK(used < ENOUGH - 4096); /* a page is the system's guard, in Python */
  }
  return CHECK_RESULT();
}
