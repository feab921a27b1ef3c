// Iterative solution of a batch of independent linear systems A x = b, one per material point, of which only products
// with A are known.
//
// GMRES: Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986) 856.
// BiCGStab: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "capi/tensor/tensor.h"

namespace neml2_capi::newton {

// Map from (points, n), row-major, to (points, n). It may return its argument.
using Operator = std::function<Tensor(const Tensor&)>;

struct LinearSettings {
  enum class Method { gmres, bicgstab };
  Method method = Method::gmres;
  std::int64_t restart = 40;    // GMRES: the greatest dimension of the Krylov space
  std::int64_t max_its = 1000;  // GMRES rounds it up to whole cycles
  double abs_tol = 0.0;
  double rel_tol = 1e-4;
  // True to do as NEML2: with GMRES all points go on until all have converged, and no denominator is less than the
  // relative precision, whatever the scale of the system.
  bool whole_batch = false;
};

// Outcome of each point.
struct LinearOutcome {
  Vector<std::int32_t> iterations;  // up to where it had converged
  Vector<char> converged;
};

// Solves A x = b from x = 0 for `b` of (points, n), float64 or float32. An empty preconditioner is the identity.
//
// A point has converged when |r| < abs_tol or |r| < rel_tol |b|, with r the residual; GMRES takes the preconditioned
// residual instead, as NEML2 does. The point is then left alone: its solution does not depend on the points beside it.
// `x` receives the last iterate if a point did not converge, and NaN if its numbers were not finite.
LinearOutcome solve_linear(const Operator& a, const Operator& preconditioner, const Tensor& b, Tensor& x,
                           const LinearSettings& settings);

// Solves A X = B column by column: (points, n, n) and (points, n, m), both row-major, give (points, n, m). A column
// that was not found, by more than what round-off explains, is NaN.
Tensor solve_dense_columns(const Tensor& a, const Tensor& b, const LinearSettings& settings);

}  // namespace neml2_capi::newton
