// Linear systems by LU factorisation with partial pivoting, in three forms: one system in every lane, and one system
// with its rows in the lanes, for few right-hand sides, or its columns, for many. All do the same operations on every
// element in the same order (element (i, j) loses l_ik u_kj for k = 0, 1, ...), so that they agree bit by bit.
#pragma once

#include <limits>

#include "capi/aoti/builtin/kernels.h"
#include "capi/aoti/builtin/simd.h"

namespace neml2_capi::aoti::builtin::NML2_INSTRUCTION_SET {

template <class T>
inline constexpr T no_number = std::numeric_limits<T>::quiet_NaN();

// Division by a pivot, or by one in every lane: as in LAPACK by its reciprocal, where that is accurate.
template <class T, class V>
class Pivot {
 public:
  // A zero pivot divides nothing: all that is below it is zero, too.
  explicit Pivot(const V& value) : Pivot(value, invert(value == V{} ? V{} + T(1) : value)) {}
  // With the reciprocal that was found before.
  Pivot(const V& value, const V& reciprocal)
      : value_(value), reciprocal_(reciprocal), accurate_(!any(reciprocal == V{})) {}

  const V& reciprocal() const { return reciprocal_; }

  template <class X>
  X divide(const X& x) const {
    const X quotient = x * reciprocal_;
    return accurate_ ? quotient : reciprocal_ != V{} ? quotient : x / value_;
  }

 private:
  static constexpr T smallest = std::numeric_limits<T>::min();

  // 0 where the value or its reciprocal has lost digits to underflow, or is not a number.
  static V invert(const V& value) {
    const V size = absolute(value);
    return ((size >= smallest) & (size <= T(1) / smallest)) ? T(1) / value : V{};
  }

  V value_;
  V reciprocal_;
  bool accurate_;
};

// Rows of `size` elements, `stride` apart: each loses its multiples of the pivot rows, of one after the other.
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

// Calls f(i, number of rows) for groups of rows that are computed together.
template <class F>
[[gnu::always_inline]] inline void in_groups(std::int64_t i, std::int64_t end, F&& f) {
  for (; i + 4 <= end; i += 4) f(i, std::integral_constant<int, 4>{});
  for (; i + 2 <= end; i += 2) f(i, std::integral_constant<int, 2>{});
  for (; i < end; ++i) f(i, std::integral_constant<int, 1>{});
}

// Up to lane_count<T> systems at once. Element (i, j) of [A b], of all of them, is one vector.
template <class T>
void solve_in_lanes(const SystemLayout& layout, const System<T>* systems, int count, T* work) {
  using V = Lanes<T>;
  using Index = Integer<T>;
  constexpr int width = lane_count<T>;
  const std::int64_t n = layout.n, columns = n + layout.sides;
  const auto place = [&](std::int64_t i, std::int64_t j) { return work + (i * columns + j) * width; };
  const auto get = [&](std::int64_t i, std::int64_t j) { return load(place(i, j)); };
  T* const reciprocals = place(n, 0);

  // Lanes without a system of their own repeat the last one.
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
  // Columns go in pairs, so that what is right of them is read and written half as often: the first of a pair is taken
  // from the second, and then both from the rest.
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
        // All lanes with this pivot.
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

// A matrix in columns of `size` elements, which fill whole vectors; those past the last row are zero.
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

// The row of the pivot, the first of the largest from row k on; k where that is not a number. The first vector holds
// row k, and the rows that are `below` it. What pads the column is zero or not a number, and never larger.
template <class T, class Mask>
[[gnu::always_inline]] inline std::int64_t find_pivot(const T* column, std::int64_t k, std::int64_t size,
                                                      const Mask& below) {
  using V = Lanes<T>;
  constexpr int width = lane_count<T>;
  const V own = broadcast(absolute(column[k])), first = absolute(load(column));
  V largest = below & (first > own) ? first : own;
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

// One system with few right-hand sides. Columns of [A b] are stored one after another, each in whole vectors. They are
// eliminated in blocks of as many columns as a vector has lanes, so that what is right of a block is read and written
// once for all of it. Nobody reads what becomes of the rows that pad a column.
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
    // Below the last block there is nothing: if it is not whole, it takes the right-hand sides with it.
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

  // What a block finds is taken from all rows above, whose sums then do not wait for one another. Rows that are found
  // already lose it too, but they are written out.
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

// One system with many right-hand sides, which fill the lanes. Rows of [A b] are stored one after another, each in
// whole vectors. What stands left of the diagonal is used up, and overwritten with anything.
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

  // What was found is taken from all rows above, whose sums then do not wait for one another.
  for (std::int64_t j = 0; j < x_size; j += width) {
    // Past the last right-hand side stands what follows in memory; nobody reads what becomes of it.
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

// Whether a column fills the lanes better than a row. With columns the swaps and the substitution take as long again
// for every right-hand side; the elimination, n^3, gains. The ratio is measured.
inline bool fit_in_columns(std::int64_t n, std::int64_t sides) { return sides <= 1 || n * n * n >= 2000 * sides; }

template <class T>
void solve_one(const SystemLayout& layout, const System<T>& system, T* work) {
  if (fit_in_columns(layout.n, layout.sides))
    solve_by_columns(layout, system, work);
  else
    solve_by_rows(layout, system, work);
}

// Many systems go in lanes while all of them fit into the first cache.
template <class T>
bool fit_in_lanes(std::int64_t n, std::int64_t sides) {
  return n * (n + sides) * vector_bytes <= 32768;
}

template <class T>
std::int64_t solve_work(std::int64_t n, std::int64_t sides) {
  const std::int64_t one = fit_in_columns(n, sides) ? (n + sides) * padded<T>(n) + n
                                                    : n * (padded<T>(n + sides) + padded<T>(sides) + 1) + lane_count<T>;
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
      solve_one(layout, systems[at++], work);
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

}  // namespace neml2_capi::aoti::builtin::NML2_INSTRUCTION_SET
