// Nonlinear systems of an implicit segment whose Newton steps packages make.
#pragma once

#include <cstdint>

#include "capi/newton/system.h"
#include "capi/segments/solver_packages.h"

namespace neml2_capi::model {

// Base of the systems of all solvers.
class PackageSystem : public newton::System {
 public:
  // Starts from the unknowns of `at`. The packages must outlive it.
  PackageSystem(const SolverPackages& packages, Operands at) : packages_(packages), at_(std::move(at)) {}

  Groups residual(const Groups& u) override;
  Groups quick_residual(const Groups& u, const Vector<std::int64_t>& rows) override;
  Vector<Tensor> singular_on_device() const override { return singular_on_device_; }
  void keep(const Vector<std::int64_t>& rows) override { at_ = select(std::move(at_), rows); }
  bool can_shrink() const override { return packages_.any_batch; }

 protected:
  // Runs a package of (unknowns, givens, parameters); the outputs become row-major.
  void run(const Package& package, const Operands& at, Handles& outputs, graph::SingularInfo* singular = nullptr) const;
  // Returns an entry per point, and keeps what a device has noted.
  Vector<std::int32_t> note(graph::SingularInfo& info);

  const SolverPackages& packages_;
  Operands at_;

 private:
  Vector<Tensor> singular_on_device_;
};

// System whose step is a direct solve: `solve` takes what `jacobian` returns.
class DirectSystem final : public PackageSystem {
 public:
  using PackageSystem::PackageSystem;

  Groups linearize(const Groups& u) override;
  Groups step(Vector<std::int32_t>& singular) override;
  void keep(const Vector<std::int64_t>& rows) override;

 private:
  Handles operator_{0};  // the blocks, then the residual
};

// System whose residual and step come from one package, as before schema 12.
class StepSystem final : public PackageSystem {
 public:
  using PackageSystem::PackageSystem;

  Groups linearize(const Groups& u) override;
  Groups step(Vector<std::int32_t>& singular) override;
  void keep(const Vector<std::int64_t>& rows) override;

 private:
  Groups step_;
  Vector<std::int32_t> singular_;
};

}  // namespace neml2_capi::model
