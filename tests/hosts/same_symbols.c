/* A host that has functions of the names that packages import and export. Nobody must call them. */
#include <stdlib.h>

#define TRAP(name) \
  void name(void); \
  void name(void) { abort(); }

TRAP(aoti_torch_empty_strided)
TRAP(aoti_torch_clone)
TRAP(aoti_torch_delete_tensor_object)
TRAP(aoti_torch_get_data_ptr)
TRAP(aoti_torch_get_sizes)
TRAP(aoti_torch_proxy_executor_call_function)
TRAP(Sleef_expd4_u10)
TRAP(Sleef_powd4_u10)
TRAP(AOTInductorModelContainerCreateWithDevice)
TRAP(AOTInductorModelContainerRunSingleThreaded)
TRAP(AOTInductorModelContainerDelete)
