// Inverse of the small matrix by which free strains are condensed.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>

#include "capi/hypotheses/hypothesis.h"
#include "capi/tensor/numbers.h"

namespace neml2_capi::model {

class Inverse {
 public:
  // Inverts the rows and columns `at` of a 6 x 6 matrix, by elimination with row pivoting.
  Inverse(const Numbers& matrix, const Components& at) : n_(at.size()) {
    double a[most][2 * most] = {};
    for (std::size_t i = 0; i < n_; ++i) {
      a[i][n_ + i] = 1;
      for (std::size_t j = 0; j < n_; ++j) a[i][j] = matrix[at[i] * symmetric_size + at[j]];
    }
    for (std::size_t k = 0; k < n_; ++k) {
      std::size_t pivot = k;
      for (std::size_t i = k + 1; i < n_; ++i)
        if (std::fabs(a[i][k]) > std::fabs(a[pivot][k])) pivot = i;
      exists_ &= std::isnormal(a[pivot][k]);
      if (!exists_) return;
      if (pivot != k) std::swap(a[k], a[pivot]);
      const double factor = 1 / a[k][k];
      for (std::size_t j = k; j < 2 * n_; ++j) a[k][j] *= factor;
      for (std::size_t i = 0; i < n_; ++i) {
        const double below = a[i][k];
        if (i != k)
          for (std::size_t j = k; j < 2 * n_; ++j) a[i][j] -= below * a[k][j];
      }
    }
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j) inverse_[i][j] = a[i][n_ + j];
  }

  bool exists() const { return exists_; }
  double operator()(std::size_t i, std::size_t j) const { return inverse_[i][j]; }

 private:
  static constexpr std::size_t most = symmetric_size;

  std::size_t n_;
  bool exists_ = true;
  double inverse_[most][most] = {};
};

}  // namespace neml2_capi::model
