// LU factorisation of one system with its rows in the lanes: see lu.h.
#pragma once

#include "capi/lanes/kernels.h"
#include "capi/lanes/pivot.h"

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

// Returns n rounded up to whole vectors.
template <class T>
std::int64_t padded(std::int64_t n) {
  return (n + lane_count<T> - 1) / lane_count<T> * lane_count<T>;
}

// 0, 1, ... in the lanes.
template <class T>
Lanes<T> lane_numbers() {
  Lanes<T> v;
  for (int l = 0; l < lane_count<T>; ++l) v[l] = static_cast<T>(l);
  return v;
}

// Copies a matrix into columns of `size` elements, which fill whole vectors; elements past the last row are zero.
template <class T>
void gather_columns(T* to, std::int64_t size, const T* from, std::int64_t rows, std::int64_t columns,
                    std::int64_t row_stride, std::int64_t column_stride) {
  constexpr int width = lane_count<T>;
  for (std::int64_t i = 0; i < size; i += width, from += width * row_stride) {
    const std::int64_t left = rows - i;
    T* element = to + i;
    if (left >= width) {
      const T* next = from;
      for (std::int64_t j = 0; j < columns; ++j, next += column_stride, element += size) {
        Lanes<T> v;
        for (int l = 0; l < width; ++l) v[l] = next[l * row_stride];
        store(element, v);
      }
    } else {
      for (std::int64_t j = 0; j < columns; ++j, element += size) {
        store(element, Lanes<T>{});
        for (std::int64_t l = 0; l < left; ++l) element[l] = from[l * row_stride + j * column_stride];
      }
    }
  }
}

// Returns the row of the pivot, the first of the largest elements from row k on, or k if that is not a number. The
// first vector holds row k, and the rows that are `below` it. Padding is zero or not a number, and never larger.
template <class T, class Mask>
[[gnu::always_inline]] inline std::int64_t find_pivot(const T* column, std::int64_t k, std::int64_t size,
                                                      const Mask& below) {
  using V = Lanes<T>;
  constexpr int width = lane_count<T>;
  const V own = broadcast(absolute(column[k])), first = absolute(load(column));
  V largest = (below & (first > own)) ? first : own;
  for (std::int64_t i = width; i < size; i += width) {
    const V next = absolute(load(column + i));
    largest = next > largest ? next : largest;
  }
  if (!any(largest > own)) return k;
  T most = largest[0];
  for (int l = 1; l < width; ++l) most = largest[l] > most ? largest[l] : most;
  std::int64_t row = k + 1;
  while (absolute(column[row]) != most) ++row;
  return row;
}

// Solves one system. Columns of [A b] are stored one after another, each in whole vectors.
// The elimination takes blocks of as many columns as a vector has lanes, so that the columns right of a block are read
// and written once for all of it. Rows that pad a column hold values that nobody reads.
template <class T>
void solve_by_columns(const SystemLayout& layout, const System<T>& system, T* work) {
  using V = Lanes<T>;
  constexpr int width = lane_count<T>;
  const std::int64_t n = layout.n, sides = layout.sides, size = padded<T>(n);
  T* const end = work + (n + sides) * size;  // of the columns
  T* const reciprocals = end;
  const V lanes = lane_numbers<T>();
  gather_columns(work, size, system.a, n, n, layout.a_row, layout.a_column);
  gather_columns(work + n * size, size, system.b, n, sides, layout.b_row, layout.b_column);

  std::int32_t info = 0;
  bool accurate = true;
  for (std::int64_t top = 0; top < n; top += width) {
    T* const block = work + top * size;
    // The last block has no rows below: if it is not whole, it includes the right-hand sides.
    const bool whole = n - top >= width;
    const std::int64_t count = whole ? width : n - top, rows = size - top;
    T* const block_end = whole ? block + width * size : end;
    T* factors = block + top;
    for (std::int64_t k = 0; k < count; ++k, factors += size) {
      const auto below = lanes > static_cast<T>(k);
      const std::int64_t other = find_pivot(factors, k, rows, below);
      if (system.lu) system.pivots[top + k] = static_cast<std::int32_t>(top + other + 1);
      if (other != k)
#pragma GCC unroll 2
        for (T* row = (system.lu ? work : block) + top; row < end; row += size) {
          const T a = row[k];
          row[k] = row[other];
          row[other] = a;
        }
      const T value = factors[k];
      const Pivot<T, T> pivot(value);
      reciprocals[top + k] = pivot.reciprocal();
      if (pivot.reciprocal() == T(0)) accurate = false;
      if (value == T(0) && info == 0) info = static_cast<std::int32_t>(top + k + 1);

      const V first = below ? pivot.divide(load(factors)) : load(factors);
      store(factors, first);
      for (std::int64_t i = width; i < rows; i += width) store(factors + i, pivot.divide(load(factors + i)));
      for (T* to = factors + size; to < block_end; to += size) {
        const V multiple = broadcast(to[k]);
        store(to, below ? subtract_product(load(to), first, multiple) : load(to));
        for (std::int64_t i = width; i < rows; i += width)
          store(to + i, subtract_product(load(to + i), load(factors + i), multiple));
      }
    }
    for (T* to = block_end + top; to < end; to += size) {
      V element = load(to), multiples[width];
#pragma GCC unroll 16
      for (int p = 0; p < width; ++p) {
        multiples[p] = broadcast(element[p]);
        element =
            lanes > static_cast<T>(p) ? subtract_product(element, load(block + top + p * size), multiples[p]) : element;
      }
      store(to, element);
      for (std::int64_t i = width; i < rows; i += width) {
        element = load(to + i);
#pragma GCC unroll 16
        for (int p = 0; p < width; ++p)
          element = subtract_product(element, load(block + top + p * size + i), multiples[p]);
        store(to + i, element);
      }
    }
  }

  // Each block of solved unknowns is subtracted from all rows above, whose sums then do not wait for one another. It is
  // subtracted from solved rows too, which were written out before.
  T* out = system.x;
  for (T* column = work + n * size; column < end; column += size, out += layout.x_column) {
    for (std::int64_t top = size - width; top >= 0; top -= width) {
      const T* const block = work + top * size;
      const std::int64_t count = n - top < width ? n - top : width;
      V element = load(column + top), found[width] = {};
#pragma GCC unroll 16
      for (int p = width - 1; p >= 0; --p) {
        if (p >= count) continue;
        const T* const above = block + p * size;
        found[p] = broadcast(element[p]);
        found[p] = accurate ? found[p] * reciprocals[top + p]
                            : Pivot<T, T>(above[top + p], reciprocals[top + p]).divide(found[p]);
        element = subtract_product(element, load(above + top), found[p]);
      }
      for (std::int64_t i = 0; i < top; i += width) {
        element = load(column + i);
#pragma GCC unroll 16
        for (int p = width - 1; p >= 0; --p)
          if (p < count) element = subtract_product(element, load(block + p * size + i), found[p]);
        store(column + i, element);
      }
#pragma GCC unroll 16
      for (int p = 0; p < width; ++p)
        if (p < count) out[(top + p) * layout.x_row] = found[p][0];
    }
    for (std::int64_t i = 0; info != 0 && i < n; ++i) out[i * layout.x_row] = no_number<T>;
  }

  *system.info = info;
  for (std::int64_t j = 0; system.lu && j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) system.lu[i + j * n] = work[i + j * size];
}

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
