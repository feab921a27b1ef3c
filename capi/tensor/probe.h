// Numbers that graphs are given while they are examined.
#pragma once

#include <cmath>

namespace neml2_capi {

// Returns a number in [0, 1) that differs from what other numbers and draws give, so that sums and spreads of some are
// unequal to sums and spreads of others: multiples of the golden ratio and of the plastic ratio.
inline double uneven(double number, double draw = 0) {
  constexpr double golden = 0.61803398874989485, plastic = 0.75487766624669276;
  const double turns = number * golden + draw * plastic;
  return turns - std::floor(turns);
}

}  // namespace neml2_capi
