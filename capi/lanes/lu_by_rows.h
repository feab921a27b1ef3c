// LU factorisation of one system with its columns in the lanes: see lu.h.
#pragma once

#include "capi/lanes/kernels.h"
#include "capi/lanes/lu_elimination.h"

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

// Solves one system with many right-hand sides, which fill the lanes. Rows of [A b] are stored one after another, each
// in whole vectors. Elements left of the diagonal are used up, and overwritten with anything.
template <class T>
void solve_by_rows(const SystemLayout& layout, const System<T>& system, T* work) {
  constexpr int width = lane_count<T>;
  const std::int64_t n = layout.n, sides = layout.sides;
  const std::int64_t row_size = padded<T>(n + sides), x_size = padded<T>(sides);
  T* const rows = work;
  T* const x = work + n * row_size;
  T* const reciprocals = x + n * x_size;

  for (std::int64_t i = 0; i < n; ++i) {
    T* row = rows + i * row_size;
    for (std::int64_t j = row_size - width; j < row_size; ++j) row[j] = T(0);
    for (std::int64_t j = 0; j < n; ++j) row[j] = system.a[i * layout.a_row + j * layout.a_column];
    for (std::int64_t j = 0; j < sides; ++j) row[n + j] = system.b[i * layout.b_row + j * layout.b_column];
  }

  T* const lu = system.lu;
  std::int32_t info = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    T* const pivot_row = rows + k * row_size;
    T largest = absolute(pivot_row[k]);
    for (std::int64_t i = k + 1; i < n; ++i) {
      const T size = absolute(rows[i * row_size + k]);
      largest = size > largest ? size : largest;
    }
    std::int64_t other = k;
    while (other < n && absolute(rows[other * row_size + k]) != largest) ++other;
    if (other == n) other = k;  // not a number
    if (other != k) {
      T* const other_row = rows + other * row_size;
      for (std::int64_t j = k / width * width; j < row_size; j += width) {
        const auto a = load(pivot_row + j), b = load(other_row + j);
        store(pivot_row + j, b);
        store(other_row + j, a);
      }
    }
    const Pivot<T, T> pivot(pivot_row[k]);
    reciprocals[k] = pivot.reciprocal();
    if (pivot_row[k] == T(0) && info == 0) info = static_cast<std::int32_t>(k + 1);
    if (lu) {
      system.pivots[k] = static_cast<std::int32_t>(other + 1);
      for (std::int64_t j = 0; j < k && other != k; ++j) {
        const T a = lu[k + j * n];
        lu[k + j * n] = lu[other + j * n];
        lu[other + j * n] = a;
      }
    }
    const std::int64_t first = (k + 1) / width * width;
    in_groups(k + 1, n, [&](std::int64_t i, auto group) {
      T* const row = rows + i * row_size;
      Lanes<T> factors[group][1];
      for (int r = 0; r < group; ++r) {
        const T factor = pivot.divide(row[r * row_size + k]);
        if (lu) lu[i + r + k * n] = factor;
        factors[r][0] = broadcast(factor);
      }
      eliminate<T, group, 1>(row + first, pivot_row + first, row_size, row_size - first, factors);
    });
  }

  // Each solved unknown is subtracted from all rows above, whose sums then do not wait for one another.
  for (std::int64_t j = 0; j < x_size; j += width) {
    // Lanes past the last right-hand side hold whatever follows in memory; nobody reads their results.
    T* const column = x + j;
    for (std::int64_t i = 0; i < n; ++i) store(column + i * x_size, load(rows + i * row_size + n + j));
    for (std::int64_t k = n; k-- > 0;) {
      const Lanes<T> found = Pivot<T, T>(rows[k * row_size + k], reciprocals[k]).divide(load(column + k * x_size));
      store(column + k * x_size, found);
      for (std::int64_t i = 0; i < k; ++i)
        store(column + i * x_size,
              subtract_product(load(column + i * x_size), broadcast(rows[i * row_size + k]), found));
    }
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < sides; ++j)
      system.x[i * layout.x_row + j * layout.x_column] = info != 0 ? no_number<T> : x[i * x_size + j];

  *system.info = info;
  if (!lu) return;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i; j < n; ++j) lu[i + j * n] = rows[i * row_size + j];
}

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
