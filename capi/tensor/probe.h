// What a graph is given to find out what it does, and whether what it gives is another.
#pragma once

#include <cmath>
#include <cstring>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// Returns a number in [0, 1) that differs from those of other numbers and draws, so that no sum or spread of some is that of
// others: multiples of the golden ratio and of the plastic ratio.
inline double uneven(double number, double draw = 0) {
  constexpr double golden = 0.61803398874989485, plastic = 0.75487766624669276;
  const double turns = number * golden + draw * plastic;
  return turns - std::floor(turns);
}

// Tells whether tensors of the host with the same sizes have the same bits.
inline bool have_equal_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.row_major(), y = b.row_major();
  return std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.numel() * x.itemsize())) == 0;
}

}  // namespace neml2_capi
