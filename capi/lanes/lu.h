// Linear systems by LU factorisation with partial pivoting, in two forms: one system in every lane, and one system with
// its rows in the lanes. Both do the same operations on every element in the same order (element (i, j) loses l_ik u_kj
// for k = 0, 1, ...), so that they agree bit by bit.
#pragma once

#include "capi/lanes/lu_by_columns.h"
#include "capi/lanes/lu_in_lanes.h"

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

// Tells whether as many systems as there are lanes fit into the first-level cache.
template <class T>
bool fit_in_lanes(std::int64_t n, std::int64_t sides) {
  return n * (n + sides) * vector_bytes <= 32768;
}

template <class T>
std::int64_t solve_work(std::int64_t n, std::int64_t sides) {
  const std::int64_t one = (n + sides) * padded<T>(n) + n;
  const std::int64_t many = fit_in_lanes<T>(n, sides) ? n * (n + sides + 1) * lane_count<T> : 0;
  return one > many ? one : many;
}

template <class T>
void solve(const SystemLayout& layout, const System<T>* systems, std::int64_t count, T* work) {
  const bool in_lanes = fit_in_lanes<T>(layout.n, layout.sides);
  for (std::int64_t at = 0; at < count;) {
    const std::int64_t left = count - at;
    if (in_lanes && left > 1) {
      const int group = static_cast<int>(left < lane_count<T> ? left : lane_count<T>);
      solve_in_lanes(layout, systems + at, group, work);
      at += group;
    } else {
      solve_by_columns(layout, systems[at++], work);
    }
  }
}

template <class T>
void substitute(const T* lu, const std::int32_t* pivots, std::int64_t n, bool transposed, T* x) {
  const auto swap_back = [&](std::int64_t k) {
    const T value = x[k];
    x[k] = x[pivots[k] - 1];
    x[pivots[k] - 1] = value;
  };
  if (!transposed) {
    for (std::int64_t k = 0; k < n; ++k) swap_back(k);
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t i = k + 1; i < n; ++i) x[i] = subtract_product(x[i], lu[i + k * n], x[k]);
    for (std::int64_t k = n; k-- > 0;) {
      x[k] = Pivot<T, T>(lu[k + k * n]).divide(x[k]);
      for (std::int64_t i = 0; i < k; ++i) x[i] = subtract_product(x[i], lu[i + k * n], x[k]);
    }
  } else {
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t i = 0; i < k; ++i) x[k] = subtract_product(x[k], lu[i + k * n], x[i]);
      x[k] = Pivot<T, T>(lu[k + k * n]).divide(x[k]);
    }
    for (std::int64_t k = n; k-- > 0;)
      for (std::int64_t i = k + 1; i < n; ++i) x[k] = subtract_product(x[k], lu[i + k * n], x[i]);
    for (std::int64_t k = n; k-- > 0;) swap_back(k);
  }
}

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
