// Element types, and places of memory.
#pragma once

#include <cstdint>
#include <string>

#include "neml2_capi.h"

namespace neml2_capi {

enum class DType : std::int32_t {
  float64 = NEML2_FLOAT64,
  float32 = NEML2_FLOAT32,
  int64 = NEML2_INT64,
  int32 = NEML2_INT32,
  int16 = NEML2_INT16,
  int8 = NEML2_INT8,
  uint8 = NEML2_UINT8,
  boolean = NEML2_BOOL,
  float16 = NEML2_FLOAT16,
  bfloat16 = NEML2_BFLOAT16,
};

inline bool is_dtype(std::int32_t code) { return code >= NEML2_FLOAT64 && code <= NEML2_BFLOAT16; }

inline std::int64_t itemsize(DType dtype) {
  static constexpr std::int8_t sizes[] = {0, 8, 4, 8, 4, 2, 1, 1, 1, 2, 2};
  return sizes[static_cast<std::int32_t>(dtype)];
}

// Tells whether laws compute with the element type.
inline bool is_real(DType dtype) { return dtype == DType::float64 || dtype == DType::float32; }

// Returns the name of an element type that numpy, torch and the metadata use.
inline const char* name_of(DType dtype) {
  constexpr const char* names[] = {"",     "float64", "float32", "int64",   "int32",   "int16",
                                   "int8", "uint8",   "bool",    "float16", "bfloat16"};
  return names[static_cast<std::int32_t>(dtype)];
}

// Place of memory.
struct Device {
  enum class Type : std::int8_t { cpu = NEML2_DEVICE_CPU, cuda = NEML2_DEVICE_CUDA, opencl = NEML2_DEVICE_OPENCL };
  Type type = Type::cpu;
  // True for memory of the CPU that only the operators of libtorch may touch, as if a device held it: see
  // Runtime::tensors.
  bool by_operators = false;
  std::int16_t index = 0;

  // Returns the device that a caller knows.
  Device as_seen() const noexcept { return {type, false, index}; }
  // Tells whether the processor reads and writes the memory.
  bool is_host() const noexcept { return type == Type::cpu && !by_operators; }
  // "cpu", "cuda:0", "opencl:0"
  std::string str() const {
    return type == Type::cpu ? "cpu" : (type == Type::cuda ? "cuda:" : "opencl:") + std::to_string(index);
  }
  friend bool operator==(const Device&, const Device&) = default;
};

}  // namespace neml2_capi
