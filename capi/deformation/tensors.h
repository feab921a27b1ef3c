// Tensors of a point: matrices row by row, and symmetric ones in Mandel notation (xx, yy, zz, sqrt(2) yz, xz, xy).
#pragma once

#include <array>
#include <cstddef>

namespace neml2_capi::deformation {

using Matrix = std::array<double, 9>;  // of two indices, row by row
using Six = std::array<double, 6>;     // symmetric
template <std::size_t rows, std::size_t columns>
using Dense = std::array<double, rows * columns>;  // row by row

inline constexpr double root_of_2 = 1.4142135623730951;
inline constexpr Matrix unit = {1, 0, 0, 0, 1, 0, 0, 0, 1};
// The row and the column of a component of a Six, and its factor.
inline constexpr std::size_t row_of[6] = {0, 1, 2, 1, 0, 0}, column_of[6] = {0, 1, 2, 2, 2, 1};
inline constexpr double factor_of[6] = {1, 1, 1, root_of_2, root_of_2, root_of_2};

// Returns a b, of (rows, inner) and (inner, columns).
template <std::size_t rows, std::size_t inner, std::size_t columns>
Dense<rows, columns> product(const Dense<rows, inner>& a, const Dense<inner, columns>& b) {
  Dense<rows, columns> c{};
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j) c[columns * i + j] += a[inner * i + k] * b[columns * k + j];
  return c;
}

template <std::size_t rows, std::size_t columns>
Dense<columns, rows> transposed(const Dense<rows, columns>& a) {
  Dense<columns, rows> b;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) b[rows * j + i] = a[columns * i + j];
  return b;
}

inline Matrix multiply(const Matrix& a, const Matrix& b) { return product<3, 3, 3>(a, b); }
inline Matrix transpose(const Matrix& a) { return transposed<3, 3>(a); }

inline double determinant(const Matrix& a) {
  return a[0] * (a[4] * a[8] - a[5] * a[7]) - a[1] * (a[3] * a[8] - a[5] * a[6]) + a[2] * (a[3] * a[7] - a[4] * a[6]);
}

inline Matrix inverse(const Matrix& a) {
  const double d = determinant(a);
  return {(a[4] * a[8] - a[5] * a[7]) / d, (a[2] * a[7] - a[1] * a[8]) / d, (a[1] * a[5] - a[2] * a[4]) / d,
          (a[5] * a[6] - a[3] * a[8]) / d, (a[0] * a[8] - a[2] * a[6]) / d, (a[2] * a[3] - a[0] * a[5]) / d,
          (a[3] * a[7] - a[4] * a[6]) / d, (a[1] * a[6] - a[0] * a[7]) / d, (a[0] * a[4] - a[1] * a[3]) / d};
}

inline Matrix to_matrix(const Six& s) {
  Matrix m;
  for (std::size_t i = 0; i < 6; ++i)
    m[3 * row_of[i] + column_of[i]] = m[3 * column_of[i] + row_of[i]] = s[i] / factor_of[i];
  return m;
}

// Returns the symmetric part of a matrix.
inline Six to_six(const Matrix& m) {
  Six s;
  for (std::size_t i = 0; i < 6; ++i)
    s[i] = (m[3 * row_of[i] + column_of[i]] + m[3 * column_of[i] + row_of[i]]) / 2 * factor_of[i];
  return s;
}

// Returns the matrix of six rows whose product with a symmetric tensor A is A turned, Q A Q^T.
inline Dense<6, 6> turn_of_six(const Matrix& q) {
  Dense<6, 6> turn;
  for (std::size_t j = 0; j < 6; ++j) {
    Six basis{};
    basis[j] = 1;
    const Six turned = to_six(multiply(multiply(q, to_matrix(basis)), transpose(q)));
    for (std::size_t i = 0; i < 6; ++i) turn[6 * i + j] = turned[i];
  }
  return turn;
}

// Returns the matrix of nine rows whose product with a tensor A is Q A Q^T.
inline Dense<9, 9> turn_of_nine(const Matrix& q) {
  Dense<9, 9> turn;
  for (std::size_t i = 0; i < 9; ++i)
    for (std::size_t j = 0; j < 9; ++j) turn[9 * i + j] = q[3 * (i / 3) + j / 3] * q[3 * (i % 3) + j % 3];
  return turn;
}

}  // namespace neml2_capi::deformation
