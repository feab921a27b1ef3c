// Linear systems by LU factorisation with partial pivoting, in two forms: one system in every lane, and one system
// with its columns in the lanes. Both do the same operations on every element in the same order (element (i, j) loses
// l_ik u_kj for k = 0, 1, ...), so that they agree bit by bit.
#pragma once

#include <limits>

#include "capi/aoti/builtin/kernels.h"
#include "capi/aoti/builtin/simd.h"

namespace neml2_capi::aoti::builtin::NML2_INSTRUCTION_SET {

template <class T>
inline constexpr T no_number = std::numeric_limits<T>::quiet_NaN();

// A pivot, or one in every lane, to divide by: as in LAPACK by its reciprocal, where that is accurate.
template <class T, class V>
struct Pivot {
  using Truth = decltype(V{} == V{});
  V value;
  Truth zero = value == V{};
  V reciprocal = zero ? V{} : V{} + T(1) / value;
  // Where the pivot or its reciprocal would have lost digits to underflow, or is not a number.
  Truth rough = !(zero | ((absolute(value) >= smallest) & (absolute(value) <= T(1) / smallest)));
  bool anywhere_rough = any(rough);

  static constexpr T smallest = std::numeric_limits<T>::min();

  template <class X>
  X divide(const X& x) const {
    const X quotient = x * reciprocal;
    return anywhere_rough ? rough ? x / value : quotient : quotient;
  }
};

// Up to lane_count<T> systems at once. Element (i, j) of [A b], of all of them, is one vector.
template <class T>
void solve_in_lanes(const SystemLayout& layout, const System<T>* systems, int count, T* work) {
  using V = Lanes<T>;
  using Index = Integer<T>;
  constexpr int width = lane_count<T>;
  const std::int64_t n = layout.n, columns = n + layout.sides;
  const auto place = [&](std::int64_t i, std::int64_t j) { return work + (i * columns + j) * width; };
  const auto get = [&](std::int64_t i, std::int64_t j) { return load(place(i, j)); };

  // Lanes without a system of their own repeat the last one.
  const auto gather = [&](auto member, std::int64_t rows_by, std::int64_t columns_by, std::int64_t first,
                          std::int64_t end) {
    const T* from[width];
    for (int l = 0; l < width; ++l) from[l] = systems[l < count ? l : count - 1].*member;
    for (std::int64_t i = 0; i < n; ++i)
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
  for (std::int64_t k = 0; k < n; ++k) {
    V largest = absolute(get(k, k));
    Lanes<Index> row = broadcast(static_cast<Index>(k));
    for (std::int64_t i = k + 1; i < n; ++i) {
      const V size = absolute(get(i, k));
      const auto larger = size > largest;
      largest = larger ? size : largest;
      row = larger ? broadcast(static_cast<Index>(i)) : row;
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
        for (std::int64_t j = wants_factors ? 0 : k; j < columns; ++j) {
          const V a = get(k, j), b = get(other, j);
          store(place(k, j), swapped ? b : a);
          store(place(other, j), swapped ? a : b);
        }
      }
    const Pivot<T, V> pivot{get(k, k)};
    info = (pivot.zero & (info == 0)) ? broadcast(static_cast<Index>(k + 1)) : info;
    for (std::int64_t i = k + 1; i < n; ++i) {
      const V factor = pivot.divide(get(i, k));
      store(place(i, k), factor);
      for (std::int64_t j = k + 1; j < columns; ++j) store(place(i, j), subtract_product(get(i, j), factor, get(k, j)));
    }
  }

  for (std::int64_t k = n; k-- > 0;) {
    const Pivot<T, V> pivot{get(k, k)};
    for (std::int64_t j = n; j < columns; ++j) {
      V x = get(k, j);
      for (std::int64_t i = n - 1; i > k; --i) x = subtract_product(x, get(k, i), get(i, j));
      x = pivot.divide(x);
      store(place(k, j), x);
      x = info != 0 ? broadcast(no_number<T>) : x;
      for (int l = 0; l < count; ++l) systems[l].x[k * layout.x_row + (j - n) * layout.x_column] = x[l];
    }
  }

  for (int l = 0; l < count; ++l) *systems[l].info = static_cast<std::int32_t>(info[l]);
  if (!wants_factors) return;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (int l = 0; l < count; ++l) systems[l].lu[i + j * n] = get(i, j)[l];
}

template <class T>
std::int64_t padded(std::int64_t n) {
  return (n + lane_count<T> - 1) / lane_count<T> * lane_count<T>;
}

// One system. Rows of [A b] are stored one after another, each in whole vectors. What stands left of the diagonal is
// used up, and overwritten with anything.
template <class T>
void solve_one(const SystemLayout& layout, const System<T>& system, T* work) {
  constexpr int width = lane_count<T>;
  const std::int64_t n = layout.n, sides = layout.sides;
  const std::int64_t row_size = padded<T>(n + sides), x_size = padded<T>(sides);
  T* const rows = work;
  T* const x = work + n * row_size;

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
    const Pivot<T, T> pivot{pivot_row[k]};
    if (pivot.zero && info == 0) info = static_cast<std::int32_t>(k + 1);
    if (lu) {
      system.pivots[k] = static_cast<std::int32_t>(other + 1);
      for (std::int64_t j = 0; j < k && other != k; ++j) {
        const T a = lu[k + j * n];
        lu[k + j * n] = lu[other + j * n];
        lu[other + j * n] = a;
      }
    }
    for (std::int64_t i = k + 1; i < n; ++i) {
      T* const row = rows + i * row_size;
      const T factor = pivot.divide(row[k]);
      if (lu) lu[i + k * n] = factor;
      const Lanes<T> factors = broadcast(factor);
      for (std::int64_t j = (k + 1) / width * width; j < row_size; j += width)
        store(row + j, subtract_product(load(row + j), factors, load(pivot_row + j)));
    }
  }

  for (std::int64_t k = n; k-- > 0;) {
    const T* const row = rows + k * row_size;
    const Pivot<T, T> pivot{row[k]};
    for (std::int64_t j = 0; j < x_size; j += width) {
      // Past the last right-hand side stands what follows in memory; nobody reads what becomes of it.
      Lanes<T> value = load(row + n + j);
      for (std::int64_t i = n - 1; i > k; --i)
        value = subtract_product(value, broadcast(row[i]), load(x + i * x_size + j));
      store(x + k * x_size + j, pivot.divide(value));
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

// Many systems go in lanes while all of them fit into the first cache.
template <class T>
bool fit_in_lanes(std::int64_t n, std::int64_t sides) {
  return n * (n + sides) * vector_bytes <= 32768;
}

template <class T>
std::int64_t solve_work(std::int64_t n, std::int64_t sides) {
  const std::int64_t one = n * (padded<T>(n + sides) + padded<T>(sides)) + lane_count<T>;
  const std::int64_t many = fit_in_lanes<T>(n, sides) ? n * (n + sides) * lane_count<T> : 0;
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
      x[k] = Pivot<T, T>{lu[k + k * n]}.divide(x[k]);
      for (std::int64_t i = 0; i < k; ++i) x[i] = subtract_product(x[i], lu[i + k * n], x[k]);
    }
  } else {
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t i = 0; i < k; ++i) x[k] = subtract_product(x[k], lu[i + k * n], x[i]);
      x[k] = Pivot<T, T>{lu[k + k * n]}.divide(x[k]);
    }
    for (std::int64_t k = n; k-- > 0;)
      for (std::int64_t i = k + 1; i < n; ++i) x[k] = subtract_product(x[k], lu[i + k * n], x[i]);
    for (std::int64_t k = n; k-- > 0;) swap_back(k);
  }
}

}  // namespace neml2_capi::aoti::builtin::NML2_INSTRUCTION_SET
