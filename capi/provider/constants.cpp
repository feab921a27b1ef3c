// Numbers of the AOTI ABI, as functions: torch's element types, devices, layouts and memory formats.
#include <cstddef>

#include "capi/package/scalar_type.h"
#include "capi/provider/exports.h"

namespace neml2_capi::aoti::builtin {

#define NML2_CONSTANT(name, value) \
  NML2_EXPORT std::int32_t nml2_torch_##name() { return value; }

NML2_CONSTANT(dtype_uint8, 0)
NML2_CONSTANT(dtype_int8, 1)
NML2_CONSTANT(dtype_int16, 2)
NML2_CONSTANT(dtype_int32, 3)
NML2_CONSTANT(dtype_int64, 4)
NML2_CONSTANT(dtype_float16, 5)
NML2_CONSTANT(dtype_float32, 6)
NML2_CONSTANT(dtype_float64, 7)
NML2_CONSTANT(dtype_complex32, 8)
NML2_CONSTANT(dtype_complex64, 9)
NML2_CONSTANT(dtype_complex128, 10)
NML2_CONSTANT(dtype_bool, 11)
NML2_CONSTANT(dtype_bfloat16, 15)
NML2_CONSTANT(dtype_float8_e5m2, 23)
NML2_CONSTANT(dtype_float8_e4m3fn, 24)
NML2_CONSTANT(dtype_float8_e5m2fnuz, 25)
NML2_CONSTANT(dtype_float8_e4m3fnuz, 26)
NML2_CONSTANT(dtype_uint16, 27)
NML2_CONSTANT(dtype_uint32, 28)
NML2_CONSTANT(dtype_uint64, 29)
NML2_CONSTANT(dtype_float8_e8m0fnu, 44)
NML2_CONSTANT(dtype_float4_e2m1fn_x2, 45)

NML2_CONSTANT(device_type_cpu, cpu)
NML2_CONSTANT(device_type_cuda, 1)
NML2_CONSTANT(device_type_xpu, 12)
NML2_CONSTANT(device_type_mps, 13)
NML2_CONSTANT(device_type_meta, 14)
NML2_CONSTANT(device_type_privateuse1, 20)

NML2_CONSTANT(layout_strided, 0)
NML2_CONSTANT(layout_sparse_coo, 1)
NML2_CONSTANT(layout_sparse_csr, 2)
NML2_CONSTANT(layout__mkldnn, 3)
NML2_CONSTANT(layout_sparse_csc, 4)
NML2_CONSTANT(layout_sparse_bsr, 5)
NML2_CONSTANT(layout_sparse_bsc, 6)
NML2_CONSTANT(layout_jagged, 7)

NML2_CONSTANT(memory_format_contiguous_format, 0)
NML2_CONSTANT(memory_format_preserve_format, 1)
NML2_CONSTANT(memory_format_channels_last, 2)
NML2_CONSTANT(memory_format_channels_last_3d, 3)

// Returns 0 for an unsupported type.
NML2_EXPORT std::size_t nml2_torch_dtype_element_size(std::int32_t dtype) {
  std::size_t size = 0;
  guarded([&] { size = static_cast<std::size_t>(itemsize(dtype_of(dtype))); });
  return size;
}

// Returns the version of torch whose ABI this is, 2.13.0: a byte each for major and minor, then the patch.
NML2_EXPORT std::uint64_t nml2_torch_abi_version() { return (2ULL << 56) | (13ULL << 48); }

}  // namespace neml2_capi::aoti::builtin
