// Products of matrices. Every element is summed in the order of the inner axis, so it does not depend on the number of
// rows, columns or batch entries beside it, nor on any stride.
#pragma once

#include "capi/lanes/kernels.h"
#include "capi/lanes/simd.h"

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

// Columns of the product that are computed together.
template <class T>
inline constexpr std::int64_t panel_columns = 4 * lane_count<T>;

template <class T>
std::int64_t multiply_work(const Extent& n) {
  return n.inner * panel_columns<T>;
}

template <class T>
Matrix<T> transposed(const Matrix<T>& m) {
  return {m.data, m.column_stride, m.row_stride};
}

// Multiplies a row of a with a panel of whole vectors.
template <class T, int vectors>
void multiply_row(std::int64_t inner, const T* a, std::int64_t stride, const T* panel, T* row) {
  Lanes<T> sum[vectors] = {};
  for (std::int64_t k = 0; k < inner; ++k, a += stride, panel += vectors * lane_count<T>) {
    const Lanes<T> factor = broadcast(*a);
    for (int v = 0; v < vectors; ++v) sum[v] = multiply_add(factor, load(panel + v * lane_count<T>), sum[v]);
  }
  for (int v = 0; v < vectors; ++v) store(row + v * lane_count<T>, sum[v]);
}

template <class T>
void multiply(const Extent& n, Matrix<T> out, T beta, Matrix<const T> added, T alpha, Matrix<const T> a,
              Matrix<const T> b, T* work) {
  // Lanes are columns, or columns of the transposed product if the product itself has too few.
  if (n.columns < lane_count<T> && n.columns < n.rows)
    return multiply<T>({n.columns, n.rows, n.inner}, transposed(out), beta, transposed(added), alpha, transposed(b),
                       transposed(a), work);

  for (std::int64_t first = 0; first < n.columns; first += panel_columns<T>) {
    const std::int64_t left = n.columns - first, columns = left < panel_columns<T> ? left : panel_columns<T>;
    const std::int64_t vectors = (columns + lane_count<T> - 1) / lane_count<T>, width = vectors * lane_count<T>;
    for (std::int64_t k = 0; k < n.inner; ++k) {
      T* const to = work + k * width;
      const T* const from = b.data + k * b.row_stride + first * b.column_stride;
      std::int64_t j = 0;
      for (; j + lane_count<T> <= columns; j += lane_count<T>)
        store(to + j, load_strided(from + j * b.column_stride, b.column_stride));
      for (; j < columns; ++j) to[j] = from[j * b.column_stride];
      for (; j < width; ++j) to[j] = T(0);
    }
    for (std::int64_t i = 0; i < n.rows; ++i) {
      alignas(64) T row[panel_columns<T>];
      const T* const factors = a.data + i * a.row_stride;
      switch (vectors) {
        case 1: multiply_row<T, 1>(n.inner, factors, a.column_stride, work, row); break;
        case 2: multiply_row<T, 2>(n.inner, factors, a.column_stride, work, row); break;
        case 3: multiply_row<T, 3>(n.inner, factors, a.column_stride, work, row); break;
        default: multiply_row<T, 4>(n.inner, factors, a.column_stride, work, row);
      }
      T* const to = out.data + i * out.row_stride + first * out.column_stride;
      const T* const plus = added.data + i * added.row_stride + first * added.column_stride;
      for (std::int64_t j = 0; j < columns; ++j) {
        const T product = alpha * row[j];
        to[j * out.column_stride] = beta == T(0) ? product : beta * plus[j * added.column_stride] + product;
      }
    }
  }
}

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
