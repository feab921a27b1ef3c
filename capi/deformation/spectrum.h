// Eigenvalues of the right Cauchy-Green tensor, and differences of functions of them that do not cancel.
#pragma once

#include "capi/deformation/tensors.h"

namespace neml2_capi::deformation {

// Eigenvalues and eigenvectors of C = F^T F.
struct Spectrum {
  std::array<double, 3> values;      // squares of the stretches
  std::array<double, 3> logarithms;  // of the stretches
  Matrix vectors;                    // columns

  // Finds them by Jacobi's rotations of C - 1, so that small strains keep their digits.
  explicit Spectrum(const Matrix& gradient);
};

// The divided differences f[a, b] and f[a, b, c] of f(x) = ln(x) / 2, for arguments above 0, equal or not.
double difference_of_logarithm(double a, double b);
double difference_of_logarithm(double a, double b, double c);

}  // namespace neml2_capi::deformation
