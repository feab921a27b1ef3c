// Components that are solved for, a point in each lane: their corrections, and derivatives without them.
#pragma once

#include "capi/kernels/newton_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

// The free components are found if those that are to vanish are that small beside all, or the next correction is beside all
// of the input.
inline constexpr double tight = 1e-10;

// Calls a function of a constant with the number of free components.
template <class Take>
[[gnu::always_inline]] inline auto with_count(std::int64_t count, Take&& take) {
  switch (count) {
    case 1: return take.template operator()<1>();
    case 2: return take.template operator()<2>();
    case 3: return take.template operator()<3>();
    case 4: return take.template operator()<4>();
    default: return take.template operator()<5>();
  }
}

template <class T, int n>
class FreeInLanes {
  using V = Lanes<T>;
  static constexpr int size = 6;  // components of a symmetric tensor

 public:
  FreeInLanes(const Free& free, const Scratch<T>& scratch) : f_(free), scratch_(scratch) {}

  void begin() const { scratch_.copy({f_.begin, f_.input + f_.first, n}); }

  // Returns the greatest of the components that are to vanish, and whether it is small enough.
  V residual() const { return greatest<n>(scratch_[f_.output] + f_.first); }
  Mask<T> vanish(const V& residual) const { return residual <= T(tight) * greatest<size>(scratch_[f_.output]); }

  // Computes the next correction. Returns the lanes in which the derivative is regular.
  Mask<T> correct() const {
    V inverse[n][n];
    const Mask<T> regular = invert(f_.derivative, inverse);
    const V* const residual = scratch_[f_.output] + f_.first;
#pragma GCC unroll 5
    for (int k = 0; k < n; ++k) {
      V sum{};
#pragma GCC unroll 5
      for (int j = 0; j < n; ++j) sum -= inverse[k][j] * residual[j];
      correction()[k] = sum;
    }
    return regular;
  }
  // Lanes whose correction is too small to count.
  Mask<T> stand() const { return greatest<n>(correction()) <= T(tight) * greatest<size>(scratch_[f_.input]); }
  // Adds the correction, and to unknowns what follows by their derivative; that has no system if they do not depend on it.
  void move(const Mask<T>& lanes) const {
    V* const to = scratch_[f_.input] + f_.first;
    for (int k = 0; k < n; ++k) set_where(lanes, to[k], V(to[k] + correction()[k]));
  }
  void move(const Mask<T>& lanes, const Implicit& system, const Chain& chain) const {
    if (!chain.system) return;
    V* const u = scratch_[system.u];
    const V* row = scratch_[chain.right];
    for (std::int64_t i = 0; i < system.unknowns; ++i, row += n) {
      V sum = u[i];
#pragma GCC unroll 5
      for (int k = 0; k < n; ++k) sum += row[k] * correction()[k];
      set_where(lanes, u[i], sum);
    }
  }

  // Condenses the derivatives for the caller. Returns the lanes in which that is possible.
  Mask<T> condense(const List<Condensed>& blocks) const {
    V inverse[n][n];
    const Mask<T> regular = invert(f_.condensed, inverse);
    for (const Condensed& block : blocks) condense(block, inverse);
    return regular;
  }

 private:
  V* correction() const { return scratch_[f_.correction]; }

  template <int count>
  [[gnu::always_inline]] static V greatest(const V* values) {
    V found = absolute(values[0]);
#pragma GCC unroll 6
    for (int c = 1; c < count; ++c) {
      const V large = absolute(values[c]);
      found = large > found ? large : found;
    }
    return found;
  }

  // Inverts the rows of the components that vanish. A lane whose pivots are small beside its diagonal is not regular.
  [[gnu::always_inline]] Mask<T> invert(const Rows& matrix, V (&a)[n][n]) const {
    const V* row = scratch_[matrix.at] + f_.first * matrix.stride;
#pragma GCC unroll 5
    for (int i = 0; i < n; ++i, row += matrix.stride)
#pragma GCC unroll 5
      for (int j = 0; j < n; ++j) a[i][j] = row[j];
    if constexpr (n == 3)
      return invert_by_cofactors(a);
    else
      return invert_by_pivots(a);
  }

  // The three divisions of pivots would wait for each other.
  [[gnu::always_inline]] static Mask<T> invert_by_cofactors(V (&a)[n][n]) {
    V cofactors[3][3];
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        const int i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;
        cofactors[i][j] = a[i1][j1] * a[i2][j2] - a[i1][j2] * a[i2][j1];
      }
    const V determinant = a[0][0] * cofactors[0][0] + a[0][1] * cofactors[0][1] + a[0][2] * cofactors[0][2];
    const Mask<T> regular = absolute(determinant) > T(1e-12) * absolute(a[0][0] * a[1][1] * a[2][2]);
    const V factor = T(1) / determinant;
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) a[i][j] = cofactors[j][i] * factor;
    return regular;
  }

  // By Gauss and Jordan, in place.
  [[gnu::always_inline]] static Mask<T> invert_by_pivots(V (&a)[n][n]) {
    Mask<T> regular = ~Mask<T>{};
    V least[n];
#pragma GCC unroll 5
    for (int k = 0; k < n; ++k) least[k] = T(1e-10) * absolute(a[k][k]);
#pragma GCC unroll 5
    for (int k = 0; k < n; ++k) {
      regular &= absolute(a[k][k]) > least[k];
      const V factor = T(1) / a[k][k];
      a[k][k] = factor;
#pragma GCC unroll 5
      for (int j = 0; j < n; ++j)
        if (j != k) a[k][j] *= factor;
#pragma GCC unroll 5
      for (int i = 0; i < n; ++i) {
        if (i == k) continue;
        const V below = a[i][k];
#pragma GCC unroll 5
        for (int j = 0; j < n; ++j) a[i][j] = j == k ? -below * factor : a[i][j] - below * a[k][j];
      }
    }
    return regular;
  }

  void condense(const Condensed& block, const V (&inverse)[n][n]) const {
    const std::int64_t columns = block.columns.count;
    for (std::int64_t c = 0; c < columns; ++c) {
      V solved[n];  // d free components / d variable
#pragma GCC unroll 5
      for (int k = 0; k < n; ++k) solved[k] = V{};
      if (block.of_output.at != nowhere) {
        const V* from = scratch_[block.of_output.at] + f_.first * block.of_output.stride + block.columns.items[c];
#pragma GCC unroll 5
        for (int j = 0; j < n; ++j, from += block.of_output.stride)
#pragma GCC unroll 5
          for (int k = 0; k < n; ++k) solved[k] -= inverse[k][j] * *from;
      }
      V* to = scratch_[block.to] + c;
      if (block.is_of_free) {
        for (std::int64_t r = 0; r < block.rows.count; ++r, to += columns) *to = solved[r];
        continue;
      }
      const V* const direct = scratch_[block.direct.at] + block.columns.items[c];
      const V* const by_free = scratch_[block.by_free.at];
      for (const std::int64_t r : block.rows) {
        V value{};
        if (block.direct.at != nowhere) value = direct[r * block.direct.stride];
        if (block.by_free.at != nowhere) {
          const V* const row = by_free + r * block.by_free.stride;
#pragma GCC unroll 5
          for (int k = 0; k < n; ++k) value += row[k] * solved[k];
        }
        *to = value;
        to += columns;
      }
    }
  }

  const Free& f_;
  const Scratch<T>& scratch_;
};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
