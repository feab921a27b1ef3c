// Components that are solved for, a point in each lane: their corrections, and derivatives without them.
#pragma once

#include "capi/kernels/newton_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

// The free components are found if those that are to vanish are that small beside all, or the next correction is beside all
// of the input. Single precision has 6e-8.
template <class T>
inline constexpr T tight = sizeof(T) == sizeof(double) ? T(1e-10) : T(1e-6);

// Calls a function of two constants: the number of free components, and how many of them are normal; these stand first.
template <class Take>
[[gnu::always_inline]] inline auto with_counts(const Free& free, Take&& take) {
  switch (free.count) {
    case 1: return take.template operator()<1, 1>();
    case 3: return free.normal == 1 ? take.template operator()<3, 1>() : take.template operator()<3, 2>();
    case 4: return take.template operator()<4, 2>();
    default: return take.template operator()<5, 2>();
  }
}

// Solves with the derivative of the components that vanish by the free ones. Most laws leave the shears alone: if no shear
// is left over, and no normal component moves one, the normal components are solved for alone. Lanes decide for themselves.
template <class T, int n, int normal>
class SolveInLanes {
  using V = Lanes<T>;

 public:
  // Rows of the components that vanish, `stride` vectors apart, in which the free ones stand side by side.
  SolveInLanes(const V* rows, std::int64_t stride) : rows_(rows), stride_(stride) {
    load(normal_);
    normal_is_regular_ = invert(normal_);
    for_each<normal, n>([&](int i) { for_each<0, normal>([&](int j) { coupled_ |= rows[i * stride + j] != T(0); }); });
  }

  // Returns the lanes in which the shears are not zero by themselves, for a right-hand side of numbers `apart` vectors from
  // each other.
  Mask<T> coupled(const V* right, std::int64_t apart) const {
    Mask<T> found = coupled_;
    for_each<normal, n>([&](int i) { found |= right[i * apart] != T(0); });
    return found;
  }

  // Returns the lanes in which the matrix of the normal components is regular.
  const Mask<T>& regular() const { return normal_is_regular_; }
  // Returns the inverse of that matrix.
  const V (&of_normal() const)[normal][normal] { return normal_; }

  // Solves for minus a right-hand side by the normal components alone.
  [[gnu::always_inline]] void solve_normal(const V* right, std::int64_t apart, V (&x)[n]) const {
    for_each<0, n>([&](int k) {
      x[k] = V{};
      if (k < normal) for_each<0, normal>([&](int j) { x[k] -= normal_[k][j] * right[j * apart]; });
    });
  }
  // Solves for minus a right-hand side, with the shears in some lanes. Returns the lanes in which that has a solution.
  [[gnu::always_inline]] Mask<T> solve(const Mask<T>& with_shears, const V* right, std::int64_t apart, V (&x)[n]) {
    solve_normal(right, apart, x);
    if (n == normal || !any(with_shears)) return normal_is_regular_;
    solve_whole(with_shears, right, apart, x);
    return normal_is_regular_ & (~with_shears | whole_is_regular_);
  }
  // Returns a value and the product of a row with a solution, in which the shears count in some lanes alone, if in any.
  [[gnu::always_inline]] static V add(V sum, const V* row, const V (&x)[n], bool has_shears,
                                      const Mask<T>& with_shears) {
    for_each<0, normal>([&](int k) { sum += row[k] * x[k]; });
    if (n == normal || !has_shears) return sum;
    V whole = sum;
    for_each<normal, n>([&](int k) { whole += row[k] * x[k]; });
    return with_shears ? whole : sum;
  }

 private:
  template <int from, int to, class Take>
  [[gnu::always_inline]] static void for_each(Take&& take) {
#pragma GCC unroll unrolled
    for (int i = from; i < to; ++i) take(i);
  }

  void solve_whole(const Mask<T>& lanes, const V* right, std::int64_t apart, V (&x)[n]) {
    if (!has_whole_) {
      load(whole_);
      whole_is_regular_ = invert(whole_);
      has_whole_ = true;
    }
    for_each<0, n>([&](int k) {
      V sum{};
      for_each<0, n>([&](int j) { sum -= whole_[k][j] * right[j * apart]; });
      set_where(lanes, x[k], sum);
    });
  }

  template <int size>
  void load(V (&a)[size][size]) const {
    for_each<0, size>([&](int i) { for_each<0, size>([&](int j) { a[i][j] = rows_[i * stride_ + j]; }); });
  }

  // Inverts in place. Returns the lanes in which no pivot is small beside its diagonal.
  template <int size>
  [[gnu::always_inline]] static Mask<T> invert(V (&a)[size][size]) {
    if constexpr (size == 3)
      return invert_by_cofactors(a);
    else
      return invert_by_pivots(a);
  }

  // The three divisions of pivots would wait for each other.
  [[gnu::always_inline]] static Mask<T> invert_by_cofactors(V (&a)[3][3]) {
    V cofactors[3][3];
#pragma GCC unroll unrolled
    for (int i = 0; i < 3; ++i)
#pragma GCC unroll unrolled
      for (int j = 0; j < 3; ++j) {
        const int i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;
        cofactors[i][j] = a[i1][j1] * a[i2][j2] - a[i1][j2] * a[i2][j1];
      }
    const V determinant = a[0][0] * cofactors[0][0] + a[0][1] * cofactors[0][1] + a[0][2] * cofactors[0][2];
    const Mask<T> regular = absolute(determinant) > T(1e-12) * absolute(a[0][0] * a[1][1] * a[2][2]);
    const V factor = T(1) / determinant;
#pragma GCC unroll unrolled
    for (int i = 0; i < 3; ++i)
#pragma GCC unroll unrolled
      for (int j = 0; j < 3; ++j) a[i][j] = cofactors[j][i] * factor;
    return regular;
  }

  // By Gauss and Jordan.
  template <int size>
  [[gnu::always_inline]] static Mask<T> invert_by_pivots(V (&a)[size][size]) {
    Mask<T> regular = ~Mask<T>{};
    V least[size];
    for_each<0, size>([&](int k) { least[k] = T(1e-10) * absolute(a[k][k]); });
#pragma GCC unroll unrolled
    for (int k = 0; k < size; ++k) {
      regular &= absolute(a[k][k]) > least[k];
      const V factor = T(1) / a[k][k];
      a[k][k] = factor;
#pragma GCC unroll unrolled
      for (int j = 0; j < size; ++j)
        if (j != k) a[k][j] *= factor;
#pragma GCC unroll unrolled
      for (int i = 0; i < size; ++i) {
        if (i == k) continue;
        const V below = a[i][k];
#pragma GCC unroll unrolled
        for (int j = 0; j < size; ++j) a[i][j] = j == k ? -below * factor : a[i][j] - below * a[k][j];
      }
    }
    return regular;
  }

  const V* const rows_;
  const std::int64_t stride_;
  V normal_[normal][normal], whole_[n][n];
  bool has_whole_ = false;
  Mask<T> normal_is_regular_, whole_is_regular_{}, coupled_{};
};

// Condenses columns from `first` on of a block whose derivatives are all there, by the inverse of the normal components.
template <class T, int normal, int some>
[[gnu::always_inline]] inline void condense_columns(const Scratch<T>& scratch, const Condensed& block,
                                                    std::int64_t free, const Lanes<T> (&inverse)[normal][normal],
                                                    std::int64_t first) {
  using V = Lanes<T>;
  const V *const of_output = scratch[block.of_output.at] + free * block.of_output.stride,
                 *const by_free = scratch[block.by_free.at], *const direct = scratch[block.direct.at];
  V solved[some][normal], *row = scratch[block.to] + first;
  std::int64_t columns[some];
#pragma GCC unroll unrolled
  for (int c = 0; c < some; ++c) {
    columns[c] = block.columns.items[first + c];
#pragma GCC unroll 2
    for (int k = 0; k < normal; ++k) {
      solved[c][k] = V{};
#pragma GCC unroll 2
      for (int j = 0; j < normal; ++j)
        solved[c][k] -= inverse[k][j] * of_output[j * block.of_output.stride + columns[c]];
    }
  }
  for (const std::int64_t r : block.rows) {
    const V *const from = direct + r * block.direct.stride, *const by = by_free + r * block.by_free.stride;
    V sum[some];
#pragma GCC unroll unrolled
    for (int c = 0; c < some; ++c) {
      sum[c] = from[columns[c]];
#pragma GCC unroll 2
      for (int k = 0; k < normal; ++k) sum[c] += by[k] * solved[c][k];
    }
#pragma GCC unroll unrolled
    for (int c = 0; c < some; ++c) row[c] = sum[c];
    row += block.columns.count;
  }
}
template <class T, int normal>
void condense_by_normal(const Scratch<T>& scratch, const Condensed& block, std::int64_t free,
                        const Lanes<T> (&inverse)[normal][normal]) {
  const std::int64_t count = block.columns.count;
  std::int64_t c = 0;
  for (; c + 5 <= count; c += 5) condense_columns<T, normal, 5>(scratch, block, free, inverse, c);
  for (; c + 3 <= count; c += 3) condense_columns<T, normal, 3>(scratch, block, free, inverse, c);
  for (; c < count; ++c) condense_columns<T, normal, 1>(scratch, block, free, inverse, c);
}

template <class T, int n, int normal>
class FreeInLanes {
  using V = Lanes<T>;
  using Solve = SolveInLanes<T, n, normal>;
  static constexpr int size = 6;  // components of a symmetric tensor

 public:
  FreeInLanes(const Free& free, const Scratch<T>& scratch) : f_(free), scratch_(scratch) {}

  // Returns the greatest of the components that are to vanish, and whether it is small enough.
  V residual() const { return greatest<n>(left()); }
  Mask<T> vanish(const V& residual) const { return residual <= tight<T> * greatest<size>(scratch_[f_.output]); }

  // Returns the components that are to vanish.
  const V* left() const { return scratch_[f_.output] + f_.first; }
  Solve matrix(const Rows& of) const { return {scratch_[of.at] + f_.first * of.stride, of.stride}; }

  // Returns lanes whose correction is too small to count.
  Mask<T> stand(const V (&correction)[n]) const {
    return greatest<n>(correction) <= tight<T> * greatest<size>(scratch_[f_.input]);
  }
  // Adds the correction.
  void move(const Mask<T>& lanes, const V (&correction)[n]) const {
    V* const to = scratch_[f_.input] + f_.first;
    for (int k = 0; k < n; ++k) set_where(lanes, to[k], V(to[k] + correction[k]));
  }
  // Adds what follows for unknowns, by their derivatives.
  void move(const Mask<T>& lanes, const V (&correction)[n], const Mask<T>& with_shears, V* __restrict unknowns,
            const V* __restrict row, std::int64_t count) const {
    const bool has_shears = any(with_shears);
    for (std::int64_t i = 0; i < count; ++i, row += n)
      set_where(lanes, unknowns[i], Solve::add(unknowns[i], row, correction, has_shears, with_shears));
  }

  // Tells whether derivatives for the caller need those by the shears, once those by all else are there.
  bool needs_shears(const List<Condensed>& blocks) const {
    if constexpr (n == normal) return false;
    Mask<T> found{};
    const auto look = [&found](const V* column, std::int64_t stride) {
#pragma GCC unroll unrolled
      for (int i = normal; i < n; ++i) found |= column[i * stride] != T(0);
    };
    for (int j = 0; j < normal; ++j) look(rows_of(f_.condensed, f_.first) + j, f_.condensed.stride);
    for (const Condensed& block : blocks)
      if (const V* const rows = rows_of(block.of_output, f_.first); rows)
        for (const std::int64_t column : block.columns) look(rows + column, block.of_output.stride);
    return any(found);
  }

  // Condenses the derivatives for the caller. Returns the lanes in which that is possible.
  Mask<T> condense(const List<Condensed>& blocks, bool with_shears) const {
    Solve matrix = this->matrix(f_.condensed);
    Mask<T> regular = matrix.regular();
    for (const Condensed& block : blocks)
      if (with_shears || block.is_of_free || block.direct.at == nowhere || block.by_free.at == nowhere ||
          block.of_output.at == nowhere)
        regular &= condense(block, matrix);
      else
        condense_by_normal<T, normal>(scratch_, block, f_.first, matrix.of_normal());
    return regular;
  }

 private:
  template <int count>
  [[gnu::always_inline]] static V greatest(const V* values) {
    V found = absolute(values[0]);
#pragma GCC unroll unrolled
    for (int c = 1; c < count; ++c) {
      const V large = absolute(values[c]);
      found = large > found ? large : found;
    }
    return found;
  }

  [[gnu::always_inline]] Mask<T> condense(const Condensed block, Solve& matrix) const {
    Mask<T> regular = ~Mask<T>{};
    const std::int64_t columns = block.columns.count;
    const V *const of_output = rows_of(block.of_output, f_.first), *const by_free = rows_of(block.by_free, 0),
                   *const direct = rows_of(block.direct, 0);
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t column = block.columns.items[c];
      V solved[n];  // d free components / d variable
      Mask<T> coupled{};
      if (of_output) {
        coupled = matrix.coupled(of_output + column, block.of_output.stride);
        regular &= matrix.solve(coupled, of_output + column, block.of_output.stride, solved);
      }
      V* to = scratch_[block.to] + c;
      if (block.is_of_free) {
        for (std::int64_t r = 0; r < block.rows.count; ++r, to += columns) *to = solved[r];
      } else if (!of_output || !by_free) {
        for (const std::int64_t r : block.rows) {
          *to = direct ? direct[r * block.direct.stride + column] : V{};
          to += columns;
        }
      } else {
        const bool has_shears = any(coupled);
        for (const std::int64_t r : block.rows) {
          const V begin = direct ? direct[r * block.direct.stride + column] : V{};
          *to = Solve::add(begin, by_free + r * block.by_free.stride, solved, has_shears, coupled);
          to += columns;
        }
      }
    }
    return regular;
  }

  // Returns null if all is zero.
  const V* rows_of(const Rows& rows, std::int64_t first) const {
    return rows.at == nowhere ? nullptr : scratch_[rows.at] + first * rows.stride;
  }

  const Free& f_;
  const Scratch<T>& scratch_;
};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
