/* Tensors: what they own, borrow and share.
 *   test_tensors */
#include "check.h"

static int deleted;
static void count_deletion(void *context) { deleted += *(int *)context; }

static void a_new_tensor_is_zero_and_row_major(void) {
  const int64_t shape[3] = {2, 3, 4}, *sizes = NULL, *strides = NULL;
  int64_t ndim = 0;
  void *data = NULL;
  neml2_tensor *tensor = NULL;
  REQUIRE_OK(neml2_tensor_create(&tensor, NEML2_FLOAT64, 3, shape));
  ndim = tensor_info(tensor).ndim;
  sizes = tensor_info(tensor).shape;
  strides = tensor_info(tensor).strides;
  CHECK(ndim == 3 && sizes[0] == 2 && sizes[1] == 3 && sizes[2] == 4);
  CHECK(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);
  data = tensor_info(tensor).data;
  for (int i = 0; i < 24; ++i) CHECK(((double *)data)[i] == 0);
  neml2_tensor_free(&tensor);
  CHECK(tensor == NULL);
}

static void a_wrapped_tensor_is_the_callers_memory(void) {
  double values[4] = {1, 2, 3, 4};
  const int64_t n = 4;
  int one = 1;
  void *data = NULL;
  neml2_tensor *tensor = NULL, *other = NULL;
  deleted = 0;
  REQUIRE_OK(neml2_tensor_wrap(&tensor, values, NEML2_FLOAT64, 1, &n, NULL, count_deletion, &one));
  data = tensor_info(tensor).data;
  CHECK(data == values);
  REQUIRE_OK(neml2_tensor_share(&other, tensor));
  neml2_tensor_free(&tensor);
  CHECK(deleted == 0); /* the other one still uses it */
  data = tensor_info(other).data;
  CHECK(data == values);
  neml2_tensor_free(&other);
  CHECK(deleted == 1);
}

static void what_fails_does_not_delete(void) {
  double values[4] = {0};
  const int64_t n = 4, negative = -1;
  int one = 1;
  neml2_tensor *tensor = NULL;
  deleted = 0;
  CHECK_STATUS(NEML2_ERROR_DTYPE, neml2_tensor_wrap(&tensor, values, 77, 1, &n, NULL, count_deletion, &one));
  CHECK(neml2_tensor_wrap(&tensor, values, NEML2_FLOAT64, 1, &negative, NULL, count_deletion, &one) < 0);
  CHECK(neml2_tensor_wrap(&tensor, values, NEML2_FLOAT64, -1, &n, NULL, count_deletion, &one) < 0);
  CHECK(neml2_tensor_wrap(&tensor, values, NEML2_FLOAT64, 99, &n, NULL, count_deletion, &one) < 0);
  CHECK(deleted == 0 && tensor == NULL);
}

static void strides_that_lead_nowhere_are_refused(void) {
  double value = 1;
  const int64_t shape[2] = {2, 3}, backwards[2] = {3, -1}, beyond[2] = {INT64_MAX / 2, INT64_MAX / 2};
  const int64_t row[2] = {1, 1}, unused[2] = {-6, -1};
  neml2_tensor *tensor = NULL;
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_tensor_wrap(&tensor, &value, NEML2_FLOAT64, 2, shape, backwards, NULL, NULL));
  CHECK_SAYS("Axis 1");
  CHECK_OK(neml2_tensor_wrap(&tensor, &value, NEML2_FLOAT64, 2, row, unused, NULL, NULL)); /* never walked along */
  neml2_tensor_free(&tensor);
  CHECK_STATUS(NEML2_ERROR_SHAPE, neml2_tensor_wrap(&tensor, &value, NEML2_FLOAT64, 2, shape, beyond, NULL, NULL));
  CHECK(tensor == NULL);
}

static void an_impossible_size_is_an_error(void) {
  const int64_t shape[3] = {INT64_MAX / 2, 16, 16};
  neml2_tensor *tensor = NULL;
  CHECK(neml2_tensor_create(&tensor, NEML2_FLOAT64, 3, shape) < 0);
  CHECK(neml2_tensor_create(&tensor, NEML2_FLOAT64, 1, shape) < 0);
  CHECK(tensor == NULL);
}

static void dlpack_keeps_the_storage(void) {
  double values[4] = {1, 2, 3, 4};
  const int64_t n = 4;
  int one = 1;
  void *data = NULL;
  neml2_tensor *tensor = NULL, *back = NULL;
  struct DLManagedTensorVersioned *managed = NULL;
  deleted = 0;
  REQUIRE_OK(neml2_tensor_wrap(&tensor, values, NEML2_FLOAT64, 1, &n, NULL, count_deletion, &one));
  REQUIRE_OK(neml2_tensor_to_dlpack(&managed, tensor));
  neml2_tensor_free(&tensor);
  CHECK(deleted == 0);
  REQUIRE_OK(neml2_tensor_from_dlpack(&back, managed));
  data = tensor_info(back).data;
  CHECK(data == values);
  neml2_tensor_free(&back);
  CHECK(deleted == 1);
}

int main(void) {
  a_new_tensor_is_zero_and_row_major();
  a_wrapped_tensor_is_the_callers_memory();
  what_fails_does_not_delete();
  strides_that_lead_nowhere_are_refused();
  an_impossible_size_is_an_error();
  dlpack_keeps_the_storage();
  return CHECK_RESULT();
}
