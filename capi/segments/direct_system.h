// The nonlinear system of an implicit segment whose Newton step is a direct solve.
#pragma once

#include <cstdint>
#include <vector>

#include "capi/newton/system.h"
#include "capi/segments/operands.h"

namespace neml2_capi::model {

// Residual and Jacobian take (unknowns, givens, parameters), the solve takes what the Jacobian returns: the blocks of
// the operator and then the residual.
class DirectSystem : public newton::System {
 public:
  struct Packages {
    const Package& residual;
    const Package& jacobian;
    const Package& solve;
    const ParameterTail& tail;
    std::size_t num_residuals;
  };

  // Starts from the unknowns of `at`.
  DirectSystem(const Packages& packages, Operands at) : packages_(packages), at_(std::move(at)) {}

  Groups residual(const Groups& u) override;
  Groups quick_residual(const Groups& u, const Vector<std::int64_t>& rows) override;
  Groups linearize(const Groups& u) override;
  Groups step(Vector<std::int32_t>& singular) override;
  Vector<Tensor> singular_on_device() const override { return singular_on_device_; }
  void keep(const Vector<std::int64_t>& rows) override;
  bool can_shrink() const override;

 private:
  // Run a package of (unknowns, givens, parameters); the outputs become row-major.
  void run(const Package& package, const Operands& at, Handles& outputs) const;

  Packages packages_;
  Operands at_;
  Handles operator_{0};  // the blocks, then the residual
  Vector<Tensor> singular_on_device_;
};

}  // namespace neml2_capi::model
