// The OpenCL of this machine: functions of its loader, which is found at run time. CL/cl.h, version 1.2, by the Khronos
// Group, has the types and numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/base/error.h"

namespace neml2_capi::opencl {

using Object =
    void*;  // cl_platform_id, cl_device_id, cl_context, cl_command_queue, cl_mem, cl_program, cl_kernel, cl_event
using Number = std::int32_t;  // cl_int
using Count = std::uint32_t;  // cl_uint, cl_bool
using Flags = std::uint64_t;  // cl_bitfield
using Size = std::size_t;

enum : Flags {
  all_devices = 0xFFFFFFFF,
  read_write = 1,
  out_of_order = 1,
  with_times = 2,
  rounds_single_division = 1 << 7
};
enum : Count {
  platform_version = 0x0901,
  device_largest_piece = 0x1010,
  device_single_config = 0x101B,
  device_memory = 0x101F,
  device_name = 0x102B,
  driver_version = 0x102D,
  device_version = 0x102F,
  device_double_config = 0x1032,
  device_shared_memory = 0x1053,
  queue_context = 0x1090,
  queue_device = 0x1091,
  queue_properties = 0x1093,
  memory_whole = 0x1107,
  memory_first = 0x1108,
  program_binary_sizes = 0x1165,
  program_binaries = 0x1166,
  build_log = 0x1183,
  event_status = 0x11D3,
  event_start = 0x1282,
  event_end = 0x1283,
};

// Functions of OpenCL, each with the type of its result and arguments.
#define NEML2_OPENCL_FUNCTIONS(FUNCTION)                                                                         \
  FUNCTION(clGetPlatformIDs, Number(Count, Object*, Count*))                                                     \
  FUNCTION(clGetPlatformInfo, Number(Object, Count, Size, void*, Size*))                                         \
  FUNCTION(clGetDeviceIDs, Number(Object, Flags, Count, Object*, Count*))                                        \
  FUNCTION(clGetDeviceInfo, Number(Object, Count, Size, void*, Size*))                                           \
  FUNCTION(clCreateContext, Object(const std::intptr_t*, Count, const Object*, void*, void*, Number*))           \
  FUNCTION(clReleaseContext, Number(Object))                                                                     \
  FUNCTION(clCreateCommandQueue, Object(Object, Object, Flags, Number*))                                         \
  FUNCTION(clGetCommandQueueInfo, Number(Object, Count, Size, void*, Size*))                                     \
  FUNCTION(clRetainCommandQueue, Number(Object))                                                                 \
  FUNCTION(clReleaseCommandQueue, Number(Object))                                                                \
  FUNCTION(clCreateProgramWithSource, Object(Object, Count, const char**, const Size*, Number*))                 \
  FUNCTION(clCreateProgramWithBinary,                                                                            \
           Object(Object, Count, const Object*, const Size*, const unsigned char**, Number*, Number*))           \
  FUNCTION(clBuildProgram, Number(Object, Count, const Object*, const char*, void*, void*))                      \
  FUNCTION(clGetProgramInfo, Number(Object, Count, Size, void*, Size*))                                          \
  FUNCTION(clGetProgramBuildInfo, Number(Object, Object, Count, Size, void*, Size*))                             \
  FUNCTION(clReleaseProgram, Number(Object))                                                                     \
  FUNCTION(clCreateKernel, Object(Object, const char*, Number*))                                                 \
  FUNCTION(clSetKernelArg, Number(Object, Count, Size, const void*))                                             \
  FUNCTION(clReleaseKernel, Number(Object))                                                                      \
  FUNCTION(clCreateBuffer, Object(Object, Flags, Size, void*, Number*))                                          \
  FUNCTION(clReleaseMemObject, Number(Object))                                                                   \
  FUNCTION(clGetMemObjectInfo, Number(Object, Count, Size, void*, Size*))                                        \
  FUNCTION(clEnqueueWriteBuffer,                                                                                 \
           Number(Object, Object, Count, Size, Size, const void*, Count, const Object*, Object*))                \
  FUNCTION(clEnqueueReadBuffer, Number(Object, Object, Count, Size, Size, void*, Count, const Object*, Object*)) \
  FUNCTION(clEnqueueNDRangeKernel,                                                                               \
           Number(Object, Object, Count, const Size*, const Size*, const Size*, Count, const Object*, Object*))  \
  FUNCTION(clEnqueueMarkerWithWaitList, Number(Object, Count, const Object*, Object*))                           \
  FUNCTION(clWaitForEvents, Number(Count, const Object*))                                                        \
  FUNCTION(clGetEventInfo, Number(Object, Count, Size, void*, Size*))                                            \
  FUNCTION(clGetEventProfilingInfo, Number(Object, Count, Size, void*, Size*))                                   \
  FUNCTION(clReleaseEvent, Number(Object))                                                                       \
  FUNCTION(clFlush, Number(Object))                                                                              \
  FUNCTION(clFinish, Number(Object))

// Functions of OpenCL 2.0, which a loader may lack.
#define NEML2_OPENCL_LATER_FUNCTIONS(FUNCTION) FUNCTION(clSetKernelArgSVMPointer, Number(Object, Count, const void*))

struct Functions {
  template <class Type>
  using Pointer = Type*;
#define NEML2_OPENCL_MEMBER(name, ...) Pointer<__VA_ARGS__> name = nullptr;
  NEML2_OPENCL_FUNCTIONS(NEML2_OPENCL_MEMBER)
  NEML2_OPENCL_LATER_FUNCTIONS(NEML2_OPENCL_MEMBER)
#undef NEML2_OPENCL_MEMBER
};

// Returns the functions. Throws NEML2_ERROR_UNSUPPORTED if the machine has no OpenCL.
const Functions& functions();

// Throws NEML2_ERROR_MEMORY or _RUNTIME for a status that is an error, telling what failed.
void require(Number status, const char* what);
// Throws NEML2_ERROR_RUNTIME if what was put into a queue ended with an error. A kernel that reached beyond its arrays often
// ends with the number that tells elsewhere that memory is short.
void require_done(Number status);

}  // namespace neml2_capi::opencl
