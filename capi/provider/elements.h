// Walks over the elements of strided tensors, and layouts that follow from their strides.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti::builtin {

// Calls f(std::type_identity<T>{}) with the C++ type of the elements.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float64: return f(std::type_identity<double>{});
    case DType::float32: return f(std::type_identity<float>{});
    case DType::int64: return f(std::type_identity<std::int64_t>{});
    case DType::int32: return f(std::type_identity<std::int32_t>{});
    case DType::int16: return f(std::type_identity<std::int16_t>{});
    case DType::int8: return f(std::type_identity<std::int8_t>{});
    case DType::uint8: return f(std::type_identity<std::uint8_t>{});
    case DType::boolean: return f(std::type_identity<bool>{});
    default: throw std::invalid_argument(std::string("no arithmetic on elements of type ") + name_of(dtype));
  }
}

template <class F>
decltype(auto) visit_real(DType dtype, const char* operation, F&& f) {
  switch (dtype) {
    case DType::float64: return f(std::type_identity<double>{});
    case DType::float32: return f(std::type_identity<float>{});
    default: throw std::invalid_argument(std::string(operation) + " of elements of type " + name_of(dtype));
  }
}

// Calls f(offsets) for every index of `sizes` in row-major order, where offsets[k] is the index times strides[k].
template <std::size_t N, class F>
void walk(const Dims& sizes, const std::array<Dims, N>& strides, F&& f) {
  if (sizes.product() == 0) return;
  std::array<std::int64_t, N> offsets{};
  if (sizes.empty()) return f(offsets);
  const std::int64_t inner = sizes.size() - 1;
  Dims index = sizes;
  for (std::int64_t axis = 0; axis <= inner; ++axis) index[axis] = 0;
  for (;;) {
    auto position = offsets;
    for (std::int64_t i = 0; i < sizes[inner]; ++i) {
      f(position);
      for (std::size_t k = 0; k < N; ++k) position[k] += strides[k][inner];
    }
    std::int64_t axis = inner - 1;
    for (; axis >= 0; --axis) {
      const bool more = ++index[axis] < sizes[axis];
      const std::int64_t steps = more ? 1 : 1 - sizes[axis];
      for (std::size_t k = 0; k < N; ++k) offsets[k] += steps * strides[k][axis];
      if (more) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// Returns the common sizes of two tensors by numpy's rules.
Dims broadcast(const Dims& a, const Dims& b);

// Returns the strides by which a tensor of these `sizes` and `strides` is read as one of the sizes `common`.
Dims broadcast_strides(const Dims& sizes, const Dims& strides, const Dims& common);

// Returns the number of elements from the first to the last that a view touches.
std::int64_t span_of(const Dims& sizes, const Dims& strides);

// Tells whether a view touches every element of its span exactly once.
bool is_dense(const Dims& sizes, const Dims& strides);

// Returns the strides that torch gives to a new tensor computed elementwise from operands, whose strides are broadcast
// to `sizes`: dense, with the axes in the operands' order. Compiled code relies on it.
Dims elementwise_strides(const Dims& sizes, std::span<const Dims> operands);

// Returns row-major strides with the last two axes swapped: matrices as LAPACK stores them.
Dims column_major(const Dims& sizes);

// Makes a tensor, not initialised, of dense strides.
Tensor empty_strided(DType dtype, const Dims& sizes, const Dims& strides);

// Copies as in destination[...] = source, with broadcasting and conversion.
void copy_elements(const Tensor& destination, const Tensor& source);

}  // namespace neml2_capi::aoti::builtin
