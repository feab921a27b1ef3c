// The libtorch that this process uses, through its C functions alone: one build of this library serves every version
// from least_version on.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "capi/libtorch/serial_regions.h"

namespace neml2_capi::aoti::libtorch {

using Handle = struct AtenTensorOpaque*;  // handle of a tensor
using Cell = std::uint64_t;               // argument or result of an operator: a number, or an owned handle
using List = struct StableListOpaque*;
using String = struct StringOpaque*;
using Status = std::int32_t;  // 0: success

// Functions of libtorch, under their names there: FUNCTION(name, type of the result, types of the arguments).
#define NML2_TORCH_FUNCTIONS(FUNCTION)                                                                           \
  FUNCTION(aoti_torch_abi_version, std::uint64_t)                                                                \
  FUNCTION(aoti_torch_create_tensor_from_blob, Status, void* data, std::int64_t ndim, const std::int64_t* sizes, \
           const std::int64_t* strides, std::int64_t offset, std::int32_t dtype, std::int32_t device_type,       \
           std::int32_t device_index, Handle*)                                                                   \
  FUNCTION(aoti_torch_delete_tensor_object, Status, Handle)                                                      \
  FUNCTION(aoti_torch_new_tensor_handle, Status, Handle, Handle*)                                                \
  FUNCTION(aoti_torch_assign_tensors, Status, Handle source, Handle destination)                                 \
  FUNCTION(aoti_torch_get_data_ptr, Status, Handle, void**)                                                      \
  FUNCTION(aoti_torch_get_dim, Status, Handle, std::int64_t*)                                                    \
  FUNCTION(aoti_torch_get_sizes, Status, Handle, std::int64_t**)                                                 \
  FUNCTION(aoti_torch_get_strides, Status, Handle, std::int64_t**)                                               \
  FUNCTION(aoti_torch_get_dtype, Status, Handle, std::int32_t*)                                                  \
  FUNCTION(aoti_torch_get_device_type, Status, Handle, std::int32_t*)                                            \
  FUNCTION(aoti_torch_call_dispatcher, Status, const char* name, const char* overload, Cell* stack)              \
  FUNCTION(torch_new_list_reserve_size, Status, std::size_t, List*)                                              \
  FUNCTION(torch_list_push_back, Status, List, Cell)                                                             \
  FUNCTION(torch_new_string_handle, Status, const char*, std::size_t, String*)

// Functions that are null before torch 2.13.
#define NML2_NEWER_FUNCTIONS(FUNCTION)              \
  FUNCTION(torch_new_stable_ivalue, Status, Cell**) \
  FUNCTION(torch_exception_get_what_without_backtrace, const char*)

// Functions for algebra.h, which may be null.
#define NML2_ALGEBRA_FUNCTIONS(FUNCTION)                                                                         \
  FUNCTION(aoti_torch_get_device_index, Status, Handle, std::int32_t*)                                           \
  FUNCTION(aoti_torch_empty_strided, Status, std::int64_t ndim, const std::int64_t* sizes,                       \
           const std::int64_t* strides, std::int32_t dtype, std::int32_t device_type, std::int32_t device_index, \
           Handle*)                                                                                              \
  FUNCTION(aoti_torch_copy_, Status, Handle destination, Handle source, std::int32_t non_blocking)               \
  FUNCTION(aoti_torch_item_bool, Status, Handle, bool*)                                                          \
  FUNCTION(aoti_torch_aten_fill__Scalar, Status, Handle, double)                                                 \
  FUNCTION(aoti_torch_aten_subtract_Tensor, Status, Handle, Handle, double alpha, Handle*)

// Functions of libtorch_cuda.so.
#define NML2_CUDA_FUNCTIONS(FUNCTION)                                                                   \
  FUNCTION(aoti_torch_create_cuda_guard, Status, std::int32_t device_index, Guard*)                     \
  FUNCTION(aoti_torch_delete_cuda_guard, Status, Guard)                                                 \
  FUNCTION(aoti_torch_create_cuda_stream_guard, Status, void* stream, std::int32_t index, StreamGuard*) \
  FUNCTION(aoti_torch_delete_cuda_stream_guard, Status, StreamGuard)                                    \
  FUNCTION(aoti_torch_get_current_cuda_stream, Status, std::int32_t device_index, void** stream)

#define NML2_POINTER(name, Result, ...) Result (*name)(__VA_ARGS__);

struct Functions {
  NML2_TORCH_FUNCTIONS(NML2_POINTER)
  NML2_NEWER_FUNCTIONS(NML2_POINTER)
  NML2_ALGEBRA_FUNCTIONS(NML2_POINTER)
};

struct CudaFunctions {
  using Guard = struct CUDAGuardOpaque*;
  using StreamGuard = struct CUDAStreamGuardOpaque*;
  NML2_CUDA_FUNCTIONS(NML2_POINTER)
};

class Library {
 public:
  static constexpr const char* least_version = "2.10";

  // Returns the library, opened when it is first needed: the one that is in the process already, which can hold only
  // one; else the one of NEML2_CAPI_LIBTORCH, else the suggested one. Throws Error NEML2_ERROR_FILE if there is none,
  // NEML2_ERROR_UNSUPPORTED if it cannot be opened, is too old, or is not the one that NEML2_CAPI_LIBTORCH names.
  static const Library& get();

  // Suggests a libtorch for when there is no other: the library, its folder, or torch's.
  static void suggest(const std::filesystem::path& path);

  const Functions& functions() const { return functions_; }
  const std::filesystem::path& path() const { return path_; }
  const std::string& version() const { return version_; }  // "2.13.0"
  const OpenMP& openmp() const { return openmp_; }

  // Returns the functions for CUDA, whose library is opened when it is first needed. Throws Error
  // NEML2_ERROR_UNSUPPORTED if this libtorch has no such library, or that lacks functions.
  const CudaFunctions& cuda() const;

  // Returns the address of a function, also of libtorch_cuda.so if that was opened, or 0.
  std::uintptr_t address_of(const std::string& name) const;
  // Returns why the last call of this thread failed; empty if libtorch does not tell.
  std::string reason() const;

 private:
  explicit Library(std::filesystem::path path);
  void look_up_functions();

  std::filesystem::path path_;
  void* library_ = nullptr;
  Functions functions_{};
  mutable std::atomic<void*> cuda_library_ = nullptr;
  mutable CudaFunctions cuda_{};
  std::string version_;
  OpenMP openmp_;
};

}  // namespace neml2_capi::aoti::libtorch
