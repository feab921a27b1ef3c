// The libtorch that this process uses, through its C functions alone: one build of this library serves every version
// from least_version on.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "capi/loader/image.h"

namespace neml2_capi::aoti::libtorch {

using Handle = struct AtenTensorOpaque*;  // handle of a tensor
using Cell = std::uint64_t;               // argument or result of an operator: a number, or an owned handle
using List = struct StableListOpaque*;
using String = struct StringOpaque*;
using Status = std::int32_t;  // 0: success

// Functions of libtorch, under their names there.
struct Functions {
  std::uint64_t (*aoti_torch_abi_version)();
  Status (*aoti_torch_create_tensor_from_blob)(void* data, std::int64_t ndim, const std::int64_t* sizes,
                                               const std::int64_t* strides, std::int64_t offset, std::int32_t dtype,
                                               std::int32_t device_type, std::int32_t device_index, Handle*);
  Status (*aoti_torch_delete_tensor_object)(Handle);
  Status (*aoti_torch_new_tensor_handle)(Handle, Handle*);
  Status (*aoti_torch_assign_tensors)(Handle source, Handle destination);
  Status (*aoti_torch_get_data_ptr)(Handle, void**);
  Status (*aoti_torch_get_dim)(Handle, std::int64_t*);
  Status (*aoti_torch_get_sizes)(Handle, std::int64_t**);
  Status (*aoti_torch_get_strides)(Handle, std::int64_t**);
  Status (*aoti_torch_get_dtype)(Handle, std::int32_t*);
  Status (*aoti_torch_get_device_type)(Handle, std::int32_t*);
  Status (*aoti_torch_call_dispatcher)(const char* name, const char* overload, Cell* stack);
  Status (*torch_new_list_reserve_size)(std::size_t, List*);
  Status (*torch_list_push_back)(List, Cell);
  Status (*torch_new_string_handle)(const char*, std::size_t, String*);

  // Null before torch 2.13.
  Status (*torch_new_stable_ivalue)(Cell**);
  const char* (*torch_exception_get_what_without_backtrace)();

  // Functions for algebra.h, which may be null.
  Status (*aoti_torch_get_device_index)(Handle, std::int32_t*);
  Status (*aoti_torch_empty_strided)(std::int64_t ndim, const std::int64_t* sizes, const std::int64_t* strides,
                                     std::int32_t dtype, std::int32_t device_type, std::int32_t device_index, Handle*);
  Status (*aoti_torch_copy_)(Handle destination, Handle source, std::int32_t non_blocking);
  Status (*aoti_torch_item_bool)(Handle, bool*);
  Status (*aoti_torch_aten_fill__Scalar)(Handle, double);
  Status (*aoti_torch_aten_subtract_Tensor)(Handle, Handle, double alpha, Handle*);
};

// Functions of libtorch_cuda.so.
struct CudaFunctions {
  using Guard = struct CUDAGuardOpaque*;
  using StreamGuard = struct CUDAStreamGuardOpaque*;
  Status (*aoti_torch_create_cuda_guard)(std::int32_t device_index, Guard*);
  Status (*aoti_torch_delete_cuda_guard)(Guard);
  Status (*aoti_torch_create_cuda_stream_guard)(void* stream, std::int32_t device_index, StreamGuard*);
  Status (*aoti_torch_delete_cuda_stream_guard)(StreamGuard);
  Status (*aoti_torch_get_current_cuda_stream)(std::int32_t device_index, void** stream);
};

class Library {
 public:
  static constexpr const char* least_version = "2.10";

  // Returns the library, opened when it is first needed: the one that is in the process already, which can hold only
  // one; else that of NEML2_CAPI_LIBTORCH, else the suggested one. Throws Error NEML2_ERROR_FILE where there is none,
  // NEML2_ERROR_UNSUPPORTED where it cannot be opened, is too old, or is not the one that NEML2_CAPI_LIBTORCH names.
  static const Library& get();

  // Suggests a libtorch for when there is no other: the library, its folder, or torch's.
  static void suggest(const std::filesystem::path& path);

  const Functions& functions() const { return functions_; }
  const std::filesystem::path& path() const { return path_; }
  const std::string& version() const { return version_; }  // "2.13.0"
  const OpenMP& openmp() const { return openmp_; }

  // Returns the functions for CUDA, whose library is opened when it is first needed. Throws Error
  // NEML2_ERROR_UNSUPPORTED where this libtorch has no such library, or that lacks functions.
  const CudaFunctions& cuda() const;

  // Returns the address of a function, also of libtorch_cuda.so where that was opened, or 0.
  std::uintptr_t address_of(const std::string& name) const;
  // Returns why the last call of this thread failed; empty where libtorch does not tell.
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
