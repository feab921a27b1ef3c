// CUDA's driver and compiler on this machine, both found at run time. cuda.h (version 12) and nvrtc.h, by NVIDIA, have the types
// and numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neml2_capi::cuda {

using Object = void*;  // CUcontext, CUmodule, CUfunction, CUstream, nvrtcProgram
using Address = std::uint64_t;
using Status = int;  // CUresult, nvrtcResult; 0 is success
using Size = std::size_t;

enum : int {
  attribute_major = 75,
  attribute_minor = 76,
  local_bytes = 3,
  out_of_memory = 2,
  destroyed = 709,
  non_blocking = 1
};

// Functions of the driver and of the compiler, each with the type of its result and arguments.
#define NEML2_CUDA_FUNCTIONS(FUNCTION)                                                                          \
  FUNCTION(cuInit, Status(unsigned))                                                                            \
  FUNCTION(cuDriverGetVersion, Status(int*))                                                                    \
  FUNCTION(cuGetErrorString, Status(Status, const char**))                                                      \
  FUNCTION(cuDeviceGetCount, Status(int*))                                                                      \
  FUNCTION(cuDeviceGet, Status(int*, int))                                                                      \
  FUNCTION(cuDeviceGetName, Status(char*, int, int))                                                            \
  FUNCTION(cuDeviceGetAttribute, Status(int*, int, int))                                                        \
  FUNCTION(cuDeviceTotalMem_v2, Status(Size*, int))                                                             \
  FUNCTION(cuDevicePrimaryCtxRetain, Status(Object*, int))                                                      \
  FUNCTION(cuDevicePrimaryCtxGetState, Status(int, unsigned*, int*))                                            \
  FUNCTION(cuCtxPushCurrent_v2, Status(Object))                                                                 \
  FUNCTION(cuCtxPopCurrent_v2, Status(Object*))                                                                 \
  FUNCTION(cuCtxGetId, Status(Object, unsigned long long*))                                                     \
  FUNCTION(cuStreamGetCtx, Status(Object, Object*))                                                             \
  FUNCTION(cuModuleLoadData, Status(Object*, const void*))                                                      \
  FUNCTION(cuModuleUnload, Status(Object))                                                                      \
  FUNCTION(cuModuleGetFunction, Status(Object*, Object, const char*))                                           \
  FUNCTION(cuFuncGetAttribute, Status(int*, int, Object))                                                       \
  FUNCTION(cuMemAlloc_v2, Status(Address*, Size))                                                               \
  FUNCTION(cuMemFree_v2, Status(Address))                                                                       \
  FUNCTION(cuMemAllocHost_v2, Status(void**, Size))                                                             \
  FUNCTION(cuMemFreeHost, Status(void*))                                                                        \
  FUNCTION(cuMemcpyHtoDAsync_v2, Status(Address, const void*, Size, Object))                                    \
  FUNCTION(cuMemcpyDtoHAsync_v2, Status(void*, Address, Size, Object))                                          \
  FUNCTION(cuStreamCreate, Status(Object*, unsigned))                                                           \
  FUNCTION(cuStreamDestroy_v2, Status(Object))                                                                  \
  FUNCTION(cuStreamSynchronize, Status(Object))                                                                 \
  FUNCTION(cuEventCreate, Status(Object*, unsigned))                                                            \
  FUNCTION(cuEventDestroy_v2, Status(Object))                                                                   \
  FUNCTION(cuEventRecord, Status(Object, Object))                                                               \
  FUNCTION(cuEventSynchronize, Status(Object))                                                                  \
  FUNCTION(cuEventElapsedTime, Status(float*, Object, Object))                                                  \
  FUNCTION(cuLaunchKernel, Status(Object, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                                  Object, void**, void**))
#define NEML2_NVRTC_FUNCTIONS(FUNCTION)                                                                                \
  FUNCTION(nvrtcVersion, Status(int*, int*))                                                                           \
  FUNCTION(nvrtcGetErrorString, const char*(Status))                                                                   \
  FUNCTION(nvrtcCreateProgram, Status(Object*, const char*, const char*, int, const char* const*, const char* const*)) \
  FUNCTION(nvrtcCompileProgram, Status(Object, int, const char* const*))                                               \
  FUNCTION(nvrtcGetCUBINSize, Status(Object, Size*))                                                                   \
  FUNCTION(nvrtcGetCUBIN, Status(Object, char*))                                                                       \
  FUNCTION(nvrtcGetProgramLogSize, Status(Object, Size*))                                                              \
  FUNCTION(nvrtcGetProgramLog, Status(Object, char*))                                                                  \
  FUNCTION(nvrtcDestroyProgram, Status(Object*))

template <class Type>
using Pointer = Type*;
#define NEML2_CUDA_MEMBER(name, ...) Pointer<__VA_ARGS__> name = nullptr;
struct DriverFunctions {
  NEML2_CUDA_FUNCTIONS(NEML2_CUDA_MEMBER)
};
struct CompilerFunctions {
  NEML2_NVRTC_FUNCTIONS(NEML2_CUDA_MEMBER)
};
#undef NEML2_CUDA_MEMBER

// Return the functions of the driver, which is ready, and of the compiler. Throw NEML2_ERROR_UNSUPPORTED if the machine
// has none.
const DriverFunctions& driver();
const CompilerFunctions& compiler();

// Throws NEML2_ERROR_MEMORY or _RUNTIME for a status of the driver that is an error, telling what failed.
void require(Status status, const char* what);

}  // namespace neml2_capi::cuda
