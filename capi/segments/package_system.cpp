#include "capi/segments/package_system.h"

#include <utility>

#include "capi/tensor/rows.h"

namespace neml2_capi::model {

void PackageSystem::run(const Package& package, const Operands& at, Handles& outputs,
                        graph::SingularInfo* singular) const {
  Handles inputs(package.num_inputs());
  at.give(packages_.tail, inputs);
  outputs.renew(package.num_outputs());
  package.run(at.points(), inputs, outputs, singular);
  for (Tensor* output : outputs) output->make_row_major();
}

Vector<std::int32_t> PackageSystem::note(graph::SingularInfo& info) {
  singular_on_device_ = std::move(info.on_device);
  return by_point(info, at_.points());
}

Groups PackageSystem::residual(const Groups& u) {
  at_.unknowns = u;
  Handles residual(0);
  run(packages_.residual, at_, residual);
  return residual.take();
}

Groups PackageSystem::quick_residual(const Groups& u, const Vector<std::int64_t>& rows) {
  Handles residual(0);
  run(packages_.residual, select({u, at_.givens, at_.parameters}, rows), residual);
  return residual.take();
}

Groups DirectSystem::linearize(const Groups& u) {
  at_.unknowns = u;
  run(*packages_.jacobian, at_, operator_);
  Groups residual;
  residual.reserve(packages_.num_residuals);
  for (std::size_t i = operator_.size() - packages_.num_residuals; i < operator_.size(); ++i)
    residual.push_back(*operator_[i]);
  return residual;
}

Groups DirectSystem::step(Vector<std::int32_t>& singular) {
  graph::SingularInfo info;
  Handles du(packages_.solve->num_outputs());
  packages_.solve->run(at_.points(), operator_, du, &info);
  operator_.renew(0);
  singular = note(info);
  return row_major(du.take());
}

void DirectSystem::keep(const Vector<std::int64_t>& rows) {
  PackageSystem::keep(rows);
  for (Tensor* part : operator_) *part = select_rows(*part, rows);
}

Groups StepSystem::linearize(const Groups& u) {
  at_.unknowns = u;
  graph::SingularInfo info;
  Handles outputs(0);
  run(*packages_.step, at_, outputs, &info);
  singular_ = note(info);
  Groups residual = outputs.take(u.size());
  step_.clear();
  for (std::size_t i = 0; i < u.size(); ++i) step_.push_back(std::move(*outputs[i]));
  if (!packages_.step_is_taken) return residual;
  // The package tells the residual of the unknowns after the step.
  step_ = plus(step_, u, Vector<double>(static_cast<std::size_t>(at_.points()), -1.0));
  return PackageSystem::residual(u);
}

Groups StepSystem::step(Vector<std::int32_t>& singular) {
  singular = singular_;
  return std::exchange(step_, {});
}

void StepSystem::keep(const Vector<std::int64_t>& rows) {
  PackageSystem::keep(rows);
  if (step_.empty()) return;
  step_ = select_rows(step_, rows);
  newton::keep_rows(singular_, rows);
}

}  // namespace neml2_capi::model
