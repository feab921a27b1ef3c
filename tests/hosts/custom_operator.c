/* A user's library that registers a custom operator with torch, in C: neml2_capi_host::twice(Tensor x) -> Tensor. */
#include <stddef.h>
#include <stdint.h>

typedef struct tensor tensor;
typedef struct library library;

int32_t aoti_torch_library_init_fragment(const char *space, const char *file, uint32_t line, library **made);
int32_t aoti_torch_library_init_impl(const char *space, const char *key, const char *file, uint32_t line,
                                     library **made);
int32_t aoti_torch_library_def(library *self, const char *schema);
int32_t aoti_torch_library_impl(library *self, const char *name, void (*call)(uint64_t *, uint64_t, uint64_t));
int32_t aoti_torch_clone(tensor *self, tensor **made);
int32_t aoti_torch_delete_tensor_object(tensor *self);
int32_t aoti_torch_get_data_ptr(tensor *self, void **data);
int32_t aoti_torch_get_numel(tensor *self, int64_t *count);

static void twice(uint64_t *stack, uint64_t inputs, uint64_t outputs) {
  tensor *x = (tensor *)(uintptr_t)stack[0], *result = NULL;
  void *data = NULL;
  int64_t count = 0, i;
  (void)inputs, (void)outputs;
  aoti_torch_clone(x, &result);
  aoti_torch_delete_tensor_object(x);
  aoti_torch_get_data_ptr(result, &data);
  aoti_torch_get_numel(result, &count);
  for (i = 0; i < count; ++i) ((double *)data)[i] *= 2;
  stack[0] = (uint64_t)(uintptr_t)result;
}

int register_operator(void);
int register_operator(void) {
  library *schema = NULL, *kernels = NULL;
  return aoti_torch_library_init_fragment("neml2_capi_host", __FILE__, __LINE__, &schema) ||
         aoti_torch_library_def(schema, "twice(Tensor x) -> Tensor") ||
         aoti_torch_library_init_impl("neml2_capi_host", "CPU", __FILE__, __LINE__, &kernels) ||
         aoti_torch_library_impl(kernels, "twice", twice);
}
