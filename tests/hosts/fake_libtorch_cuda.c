/* A libtorch_cuda.so without a GPU: it tells on stderr which device is chosen. */
#include <stdint.h>
#include <stdio.h>

int32_t aoti_torch_create_cuda_guard(int32_t index, void **guard) {
  *guard = guard;
  fprintf(stderr, "device %d is chosen\n", (int)index);
  return 0;
}

int32_t aoti_torch_delete_cuda_guard(void *guard) {
  (void)guard;
  fputs("it is left\n", stderr);
  return 0;
}

int32_t aoti_torch_create_cuda_stream_guard(void *stream, int32_t index, void **guard) {
  *guard = stream;
  fprintf(stderr, "a stream of device %d is chosen\n", (int)index);
  return 0;
}

int32_t aoti_torch_delete_cuda_stream_guard(void *guard) {
  (void)guard;
  fputs("the stream is left\n", stderr);
  return 0;
}

int32_t aoti_torch_get_current_cuda_stream(int32_t index, void **stream) {
  (void)index;
  *stream = NULL;
  return 0;
}
