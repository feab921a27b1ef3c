#include "capi/deformation/measure.h"

#include <algorithm>
#include <cmath>

namespace neml2_capi::deformation {
namespace {

// dC / dF.
Dense<6, 9> slope_of_right_tensor(const Matrix& f) {
  Dense<6, 9> slope{};
  for (std::size_t c = 0; c < 6; ++c)
    for (std::size_t m = 0; m < 3; ++m) {
      slope[9 * c + 3 * m + row_of[c]] += f[3 * m + column_of[c]] * factor_of[c];
      slope[9 * c + 3 * m + column_of[c]] += f[3 * m + row_of[c]] * factor_of[c];
    }
  return slope;
}

// Returns R diag(d) R^T.
Dense<6, 6> turned(const Dense<6, 6>& turn, const Six& diagonal) {
  Dense<6, 6> scaled = transposed<6, 6>(turn);
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 6; ++j) scaled[6 * i + j] *= diagonal[i];
  return product<6, 6, 6>(turn, scaled);
}

// Returns the six of f(i, j) by component.
template <class F>
Six by_component(F&& f) {
  Six all;
  for (std::size_t c = 0; c < 6; ++c) all[c] = f(row_of[c], column_of[c]);
  return all;
}

}  // namespace

Deformation::Deformation(Measure measure, const Matrix& gradient)
    : measure_(measure),
      gradient_(gradient),
      volume_(determinant(gradient)),
      spectrum_(measure == Measure::green_lagrange ? unit : gradient) {}  // which needs no axes

Six Deformation::strain() const {
  if (measure_ == Measure::green_lagrange) {
    Matrix h = gradient_;  // F - 1, for the digits of small strains
    for (const std::size_t i : {0u, 4u, 8u}) h[i] -= 1;
    Matrix green = multiply(transpose(h), h);
    for (std::size_t i = 0; i < 9; ++i) green[i] = green[i] / 2 + h[i];
    return to_six(green);
  }
  const auto& e = spectrum_.logarithms;
  return in_reference({e[0], 0, 0, 0, e[1], 0, 0, 0, e[2]});
}

// From the axes of the stretches, and to them.
Six Deformation::in_reference(const Matrix& tensor) const {
  return to_six(multiply(multiply(spectrum_.vectors, tensor), transpose(spectrum_.vectors)));
}
Matrix Deformation::in_stretches(const Six& tensor) const {
  return multiply(multiply(transpose(spectrum_.vectors), to_matrix(tensor)), spectrum_.vectors);
}

// Multiplies the components in the axes of the stretches.
Six Deformation::scaled(const Six& tensor, const Six& factors) const {
  Matrix t = in_stretches(tensor);
  for (std::size_t c = 0; c < 6; ++c) {
    const std::size_t above = 3 * row_of[c] + column_of[c], below = 3 * column_of[c] + row_of[c];
    t[above] *= factors[c];
    if (above != below) t[below] *= factors[c];
  }
  return in_reference(t);
}

Dense<6, 9> Deformation::strain_slope() const {
  Dense<6, 9> slope = slope_of_right_tensor(gradient_);
  if (measure_ == Measure::green_lagrange) {
    for (double& each : slope) each /= 2;
    return slope;
  }
  const auto& c = spectrum_.values;
  const Six differences =
      by_component([&](std::size_t i, std::size_t j) { return difference_of_logarithm(c[i], c[j]); });
  return product<6, 6, 9>(turned(turn_of_six(spectrum_.vectors), differences), slope);
}

// Returns d S / d T of the second Piola-Kirchhoff stress S by the law's T; it is diagonal in the axes of the stretches.
Six Deformation::factors_to_second() const {
  const auto& c = spectrum_.values;
  return by_component([&](std::size_t i, std::size_t j) {
    return measure_ == Measure::logarithmic ? 2 * difference_of_logarithm(c[i], c[j])
                                            : volume_ / std::sqrt(c[i] * c[j]);
  });
}

Six Deformation::stress_of_law(Stress given, const Dense<9, 1>& stress) const {
  Six symmetric;
  std::copy_n(stress.begin(), 6, symmetric.begin());
  const Matrix back = inverse(gradient_);
  Six second = symmetric;
  if (given == Stress::pk1) {
    second = to_six(multiply(back, stress));
  } else if (given != Stress::pk2) {
    if (given == Stress::cauchy)
      for (double& each : symmetric) each *= volume_;
    second = to_six(multiply(multiply(back, to_matrix(symmetric)), transpose(back)));
  }
  if (measure_ == Measure::green_lagrange) return second;
  Six factors = factors_to_second();
  for (double& each : factors) each = 1 / each;
  return scaled(second, factors);
}

Six Deformation::second_piola(const Six& of_law) const {
  if (measure_ == Measure::green_lagrange) return of_law;
  return scaled(of_law, factors_to_second());
}

// d S / d C, where T stays: column by column in the axes of the stretches, then turned.
Dense<6, 6> Deformation::second_slope(const Six& of_law, const Dense<6, 6>& turn) const {
  const Matrix t = in_stretches(of_law);
  const auto& c = spectrum_.values;
  double second[27] = {};
  const double s[] = {std::sqrt(c[0]), std::sqrt(c[1]), std::sqrt(c[2])};
  if (measure_ == Measure::logarithmic)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = i; j < 3; ++j)
        for (std::size_t k = j; k < 3; ++k) {
          const double f = 2 * difference_of_logarithm(c[i], c[j], c[k]);
          for (const std::size_t at : {9 * i + 3 * j + k, 9 * i + 3 * k + j, 9 * j + 3 * i + k, 9 * j + 3 * k + i,
                                       9 * k + 3 * i + j, 9 * k + 3 * j + i})
            second[at] = f;
        }
  Dense<6, 6> slope;
  for (std::size_t column = 0; column < 6; ++column) {
    Six basis{};
    basis[column] = 1;
    const Matrix b = to_matrix(basis);
    Six six;
    for (std::size_t row = 0; row < 6; ++row) {
      const std::size_t i = row_of[row], j = column_of[row];
      double x = 0;
      for (std::size_t k = 0; k < 3; ++k)
        if (measure_ == Measure::logarithmic) {
          x += second[9 * i + 3 * k + j] * (t[3 * i + k] * b[3 * k + j] + b[3 * i + k] * t[3 * k + j]);
        } else {  // J U^-1 T U^-1, by the difference -1 / (s s' (s + s')) of 1 / sqrt, and by J
          x -= volume_ * (b[3 * i + k] * t[3 * k + j] / (s[i] * s[k] * (s[i] + s[k]) * s[j]) +
                          t[3 * i + k] * b[3 * k + j] / (s[k] * s[j] * (s[k] + s[j]) * s[i]));
          x += volume_ * t[3 * i + j] / (s[i] * s[j]) * b[4 * k] / (2 * c[k]);
        }
      six[row] = x * factor_of[row];
    }
    for (std::size_t i = 0; i < 6; ++i) slope[6 * i + column] = six[i];
  }
  return product<6, 6, 6>(turn, product<6, 6, 6>(slope, transposed<6, 6>(turn)));
}

// d stress / d S, where F stays.
Dense<9, 6> Deformation::second_to(Stress wanted) const {
  Dense<9, 6> slope{};
  for (std::size_t column = 0; column < 6; ++column) {
    Six basis{};
    basis[column] = 1;
    const Matrix first = multiply(gradient_, to_matrix(basis));
    const Six both = wanted == Stress::pk2 ? basis : to_six(multiply(first, transpose(gradient_)));
    const std::size_t size = size_of(wanted);
    for (std::size_t i = 0; i < size; ++i)
      slope[6 * i + column] = wanted == Stress::pk1 ? first[i] : wanted == Stress::cauchy ? both[i] / volume_ : both[i];
  }
  return slope;
}

Dense<9, 1> Deformation::stress(Stress wanted, const Six& of_law) const {
  const Six second = second_piola(of_law);
  Dense<9, 1> all{};
  if (wanted == Stress::pk1) return multiply(gradient_, to_matrix(second));
  Six six = second;
  if (wanted != Stress::pk2) six = to_six(multiply(multiply(gradient_, to_matrix(second)), transpose(gradient_)));
  for (std::size_t i = 0; i < 6; ++i) all[i] = wanted == Stress::cauchy ? six[i] / volume_ : six[i];
  return all;
}

Deformation::Slopes Deformation::stress_slopes(Stress wanted, const Six& of_law) const {
  const Six second = second_piola(of_law);
  const Dense<9, 6> from_second = second_to(wanted);
  Slopes slopes{from_second, {}};
  if (measure_ != Measure::green_lagrange) {
    const Dense<6, 6> turn = turn_of_six(spectrum_.vectors);
    slopes.by_law = product<9, 6, 6>(from_second, turned(turn, factors_to_second()));
    slopes.by_gradient =
        product<9, 6, 9>(from_second, product<6, 6, 9>(second_slope(of_law, turn), slope_of_right_tensor(gradient_)));
  }
  if (wanted == Stress::pk2) return slopes;
  const Matrix s = to_matrix(second), first = multiply(gradient_, s);
  auto& by = slopes.by_gradient;
  if (wanted == Stress::pk1) {
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        for (std::size_t n = 0; n < 3; ++n) by[9 * (3 * i + j) + 3 * i + n] += s[3 * n + j];
    return slopes;
  }
  const bool of_volume = wanted == Stress::cauchy;
  const double part = of_volume ? 1 / volume_ : 1;
  for (std::size_t c = 0; c < 6; ++c)
    for (std::size_t n = 0; n < 3; ++n) {
      by[9 * c + 3 * row_of[c] + n] += part * factor_of[c] * first[3 * column_of[c] + n];
      by[9 * c + 3 * column_of[c] + n] += part * factor_of[c] * first[3 * row_of[c] + n];
    }
  if (!of_volume) return slopes;
  const Matrix back = inverse(gradient_);
  const Dense<9, 1> cauchy = product<9, 6, 1>(from_second, second);
  for (std::size_t c = 0; c < 6; ++c)
    for (std::size_t m = 0; m < 3; ++m)
      for (std::size_t n = 0; n < 3; ++n) by[9 * c + 3 * m + n] -= cauchy[c] * back[3 * n + m];
  return slopes;
}

namespace {

template <class Move>
Dense<9, 6> motion(Move&& move) {
  Dense<9, 6> motion;
  for (std::size_t column = 0; column < 6; ++column) {
    Six basis{};
    basis[column] = 1;
    const Matrix change = move(to_matrix(basis));
    for (std::size_t i = 0; i < 9; ++i) motion[6 * i + column] = change[i];
  }
  return motion;
}

}  // namespace

Dense<9, 6> motion_of_rate(const Matrix& gradient) {
  return motion([&](const Matrix& rate) { return multiply(rate, gradient); });
}

Dense<9, 6> motion_of_green(const Matrix& gradient) {
  const Matrix back = transpose(inverse(gradient));
  return motion([&](const Matrix& green) { return multiply(back, green); });
}

}  // namespace neml2_capi::deformation
