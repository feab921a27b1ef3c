// Numbers of element types and devices in the AOTI ABI: torch's ScalarType and DeviceType.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti {

inline constexpr std::int32_t cpu = 0;

inline constexpr std::pair<std::int32_t, DType> scalar_types[] = {
    {0, DType::uint8},   {1, DType::int8},    {2, DType::int16},   {3, DType::int32},    {4, DType::int64},
    {5, DType::float16}, {6, DType::float32}, {7, DType::float64}, {11, DType::boolean}, {15, DType::bfloat16},
};

inline DType dtype_of(std::int32_t scalar_type) {
  for (const auto& [code, dtype] : scalar_types)
    if (code == scalar_type) return dtype;
  throw std::invalid_argument("elements of torch's scalar type " + std::to_string(scalar_type) +
                              " are not supported by the built-in provider");
}

inline std::int32_t scalar_type_of(DType wanted) noexcept {
  for (const auto& [code, dtype] : scalar_types)
    if (dtype == wanted) return code;
  return -1;
}

}  // namespace neml2_capi::aoti
