// LU factorisation of many systems, one in every lane: see lu.h.
#pragma once

#include <type_traits>

#include "capi/lanes/kernels.h"
#include "capi/lanes/pivot.h"

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

// Subtracts from rows of `size` elements, `stride` apart, their multiples of the pivot rows, one after the other.
template <class T, int rows, int pivots>
void eliminate(T* to, const T* pivot_rows, std::int64_t stride, std::int64_t size,
               const Lanes<T> (&factors)[rows][pivots]) {
#pragma GCC unroll 2
  for (std::int64_t j = 0; j < size; j += lane_count<T>) {
    Lanes<T> subtracted[pivots];
#pragma GCC unroll 2
    for (int p = 0; p < pivots; ++p) subtracted[p] = load(pivot_rows + p * stride + j);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      Lanes<T> element = load(to + r * stride + j);
#pragma GCC unroll 2
      for (int p = 0; p < pivots; ++p) element = subtract_product(element, factors[r][p], subtracted[p]);
      store(to + r * stride + j, element);
    }
  }
}

// Calls f(i, number of rows) for groups of rows to compute together.
template <class F>
[[gnu::always_inline]] inline void in_groups(std::int64_t i, std::int64_t end, F&& f) {
  for (; i + 4 <= end; i += 4) f(i, std::integral_constant<int, 4>{});
  for (; i + 2 <= end; i += 2) f(i, std::integral_constant<int, 2>{});
  for (; i < end; ++i) f(i, std::integral_constant<int, 1>{});
}

// Solves up to lane_count<T> systems at once. Element (i, j) of [A b] of all systems is one vector.
template <class T>
void solve_in_lanes(const SystemLayout& layout, const System<T>* systems, int count, T* work) {
  using V = Lanes<T>;
  using Index = Integer<T>;
  constexpr int width = lane_count<T>;
  const std::int64_t n = layout.n, columns = n + layout.sides;
  const auto place = [&](std::int64_t i, std::int64_t j) { return work + (i * columns + j) * width; };
  const auto get = [&](std::int64_t i, std::int64_t j) { return load(place(i, j)); };
  T* const reciprocals = place(n, 0);

  // Lanes without a system repeat the last one.
  const auto gather = [&](auto member, std::int64_t rows_by, std::int64_t columns_by, std::int64_t first,
                          std::int64_t end) {
    const T* from[width];
    for (int l = 0; l < width; ++l) from[l] = systems[l < count ? l : count - 1].*member;
    for (std::int64_t i = 0; i < n; ++i)
#pragma GCC unroll 2
      for (std::int64_t j = first; j < end; ++j) {
        const std::int64_t offset = i * rows_by + (j - first) * columns_by;
        V v;
        for (int l = 0; l < width; ++l) v[l] = from[l][offset];
        store(place(i, j), v);
      }
  };
  gather(&System<T>::a, layout.a_row, layout.a_column, 0, n);
  gather(&System<T>::b, layout.b_row, layout.b_column, n, columns);

  const bool wants_factors = systems[0].lu != nullptr;
  Lanes<Index> info{};
  // Columns go in pairs, so that the elements right of them are read and written half as often: the first of a pair is
  // subtracted from the second, then both from the rest.
  const std::int64_t stride = columns * width;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t first = k / 2 * 2;
    V largest = absolute(get(k, k));
    Lanes<Index> row = broadcast(static_cast<Index>(k)), at = row;
    for (std::int64_t i = k + 1; i < n; ++i) {
      const V size = absolute(get(i, k));
      const auto larger = size > largest;
      at += 1;
      largest = larger ? size : largest;
      row = larger ? at : row;
    }
    if (wants_factors)
      for (int l = 0; l < count; ++l) systems[l].pivots[k] = static_cast<std::int32_t>(row[l] + 1);
    if (any(row != static_cast<Index>(k)))
      for (int l = 0; l < width; ++l) {
        const std::int64_t other = row[l];
        if (other == k) continue;
        // The swap serves all lanes with this pivot.
        const auto swapped = row == static_cast<Index>(other);
        row = swapped ? broadcast(static_cast<Index>(k)) : row;
        for (std::int64_t j = wants_factors ? 0 : first; j < columns; ++j) {
          const V a = get(k, j), b = get(other, j);
          store(place(k, j), swapped ? b : a);
          store(place(other, j), swapped ? a : b);
        }
      }
    const Pivot<T, V> pivot(get(k, k));
    store(reciprocals + k * width, pivot.reciprocal());
    info = ((get(k, k) == T(0)) & (info == 0)) ? broadcast(static_cast<Index>(k + 1)) : info;
    for (std::int64_t i = k + 1; i < n; ++i) store(place(i, k), pivot.divide(get(i, k)));
    if (k == first) {
      const V above = get(k, k + 1);
      for (std::int64_t i = k + 1; i < n; ++i)
        store(place(i, k + 1), subtract_product(get(i, k + 1), get(i, k), above));
      continue;
    }
    const std::int64_t left = (columns - k - 1) * width;
    const V factor[1][1] = {{get(k, k - 1)}};
    eliminate<T, 1, 1>(place(k, k + 1), place(k - 1, k + 1), stride, left, factor);
    in_groups(k + 1, n, [&](std::int64_t i, auto rows) {
      V factors[rows][2];
      for (int r = 0; r < rows; ++r) {
        factors[r][0] = get(i + r, k - 1);
        factors[r][1] = get(i + r, k);
      }
      eliminate<T, rows, 2>(place(i, k + 1), place(k - 1, k + 1), stride, left, factors);
    });
  }

  for (std::int64_t k = n; k-- > 0;) {
    const Pivot<T, V> pivot(get(k, k), load(reciprocals + k * width));
    for (std::int64_t j = n; j < columns; ++j) {
      const V x = pivot.divide(get(k, j));
      for (std::int64_t i = 0; i < k; ++i) store(place(i, j), subtract_product(get(i, j), get(i, k), x));
      const V out = info != 0 ? broadcast(no_number<T>) : x;
      for (int l = 0; l < count; ++l) systems[l].x[k * layout.x_row + (j - n) * layout.x_column] = out[l];
    }
  }

  for (int l = 0; l < count; ++l) {
    *systems[l].info = static_cast<std::int32_t>(info[l]);
    for (std::int64_t j = 0; wants_factors && j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i) systems[l].lu[i + j * n] = place(i, j)[l];
  }
}

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
