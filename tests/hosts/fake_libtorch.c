/* A library that looks like libtorch and is not: of the version FAKE_VERSION, and without FAKE_LACKS. */
#include <stdint.h>

uint64_t aoti_torch_abi_version(void);
uint64_t aoti_torch_abi_version(void) { return (uint64_t)FAKE_VERSION << 48; }

#define FAKE(name) \
  int name(void);  \
  int name(void) { return 1; }

FAKE(aoti_torch_create_tensor_from_blob)
FAKE(aoti_torch_delete_tensor_object)
FAKE(aoti_torch_new_tensor_handle)
FAKE(aoti_torch_assign_tensors)
FAKE(aoti_torch_get_data_ptr)
FAKE(aoti_torch_get_dim)
FAKE(aoti_torch_get_sizes)
FAKE(aoti_torch_get_strides)
FAKE(aoti_torch_get_dtype)
FAKE(aoti_torch_get_device_type)
FAKE(torch_new_list_reserve_size)
FAKE(torch_list_push_back)
FAKE(torch_new_string_handle)
#ifndef FAKE_LACKS_DISPATCHER
FAKE(aoti_torch_call_dispatcher)
#endif
