// Nonlinear system of an implicit segment whose Newton step is an iterative linear solve: no Jacobian is assembled.
#pragma once

#include <cstdint>
#include <vector>

#include "capi/newton/krylov.h"
#include "capi/segments/groups.h"
#include "capi/segments/package_system.h"

namespace neml2_capi::model {

newton::LinearSettings linear_settings(const artifact::Krylov& krylov, bool whole_batch = false);

// Throws NEML2_ERROR_UNSUPPORTED unless all groups are dense, and NEML2_ERROR_ARTIFACT if the packages do not fit.
void check_krylov(const SolverPackages& packages, const std::vector<artifact::Group>& unknowns,
                  const std::vector<artifact::Group>& residuals);

// System whose linear solver sees flat vectors: the groups side by side.
class KrylovSystem final : public PackageSystem {
 public:
  // Starts from the unknowns of `at`.
  KrylovSystem(const SolverPackages& packages, bool whole_batch, Operands at);

  // Returns none, since linearize() takes no longer.
  Groups quick_residual(const Groups&, const Vector<std::int64_t>&) override { return {}; }
  Groups linearize(const Groups& u) override;
  // Tells in `singular` where the preconditioner could not be set up.
  Groups step(Vector<std::int32_t>& singular) override;
  void keep(const Vector<std::int64_t>& rows) override;

 private:
  Tensor times_operator(const Tensor& direction) const;
  Tensor precondition(const Tensor& residual) const;
  Vector<std::int64_t> rows_to_set_up() const;
  void set_up(const Vector<std::int64_t>& rows);
  Groups split(const Tensor& flat) const;

  newton::LinearSettings settings_;
  Vector<std::int64_t> widths_;  // of the groups of unknowns
  Groups residual_;              // at at_
  Groups state_;                 // of the preconditioner, one row per point of any element type
  Vector<std::int32_t> singular_;
  Vector<std::int32_t> last_iterations_;  // of the linear solver; empty before the first step
};

}  // namespace neml2_capi::model
