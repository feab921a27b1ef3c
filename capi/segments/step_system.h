// The nonlinear system of an implicit segment whose residual and Newton step come from one package, as before
// schema 12.
#pragma once

#include <cstdint>
#include <vector>

#include "capi/newton/system.h"
#include "capi/segments/operands.h"

namespace neml2_capi::model {

class StepSystem : public newton::System {
 public:
  struct Packages {
    const Package& residual;
    const Package& step;  // artifact::ImplicitSegment::step_package
    const ParameterTail& tail;
    bool step_is_taken;
  };

  // Starts from the unknowns of `at`.
  StepSystem(const Packages& packages, Operands at) : packages_(packages), at_(std::move(at)) {}

  Groups residual(const Groups& u) override;
  Groups quick_residual(const Groups& u, const Vector<std::int64_t>& rows) override;
  Groups linearize(const Groups& u) override;
  Groups step(Vector<std::int32_t>& singular) override;
  Vector<Tensor> singular_on_device() const override { return singular_on_device_; }
  void keep(const Vector<std::int64_t>& rows) override;
  bool can_shrink() const override;

 private:
  Vector<Tensor> inputs(const Groups& u);

  Packages packages_;
  Operands at_;
  Groups step_;
  Vector<std::int32_t> singular_;
  Vector<Tensor> singular_on_device_;
};

}  // namespace neml2_capi::model
