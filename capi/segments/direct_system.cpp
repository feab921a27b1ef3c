#include "capi/segments/direct_system.h"

#include "capi/tensor/rows.h"

namespace neml2_capi::model {

void DirectSystem::run(const Package& package, const Operands& at, Handles& outputs) const {
  Handles inputs(package.num_inputs());
  at.give(packages_.tail, inputs);
  outputs.renew(package.num_outputs());
  package.run(at.points(), inputs, outputs);
  for (Tensor* output : outputs) output->make_row_major();
}

Groups DirectSystem::residual(const Groups& u) {
  at_.unknowns = u;
  Handles residual(0);
  run(packages_.residual, at_, residual);
  return residual.take();
}

Groups DirectSystem::quick_residual(const Groups& u, const Vector<std::int64_t>& rows) {
  Handles residual(0);
  run(packages_.residual, select({u, at_.givens, at_.parameters}, rows), residual);
  return residual.take();
}

Groups DirectSystem::linearize(const Groups& u) {
  at_.unknowns = u;
  run(packages_.jacobian, at_, operator_);
  Groups residual;
  residual.reserve(packages_.num_residuals);
  for (std::size_t i = operator_.size() - packages_.num_residuals; i < operator_.size(); ++i)
    residual.push_back(*operator_[i]);
  return residual;
}

Groups DirectSystem::step(Vector<std::int32_t>& singular) {
  const std::int64_t points = operator_[0]->sizes()[0];
  aoti::SingularInfo info;
  Handles du(packages_.solve.num_outputs());
  packages_.solve.run(points, operator_, du, &info);
  operator_.renew(0);
  singular = by_point(info, points);
  singular_on_device_ = std::move(info.on_device);
  return row_major(du.take());
}

void DirectSystem::keep(const Vector<std::int64_t>& rows) {
  at_.givens = select_rows(at_.givens, rows);
  at_.parameters = select_rows(at_.parameters, rows);
  for (Tensor* part : operator_) *part = select_rows(*part, rows);
}

bool DirectSystem::can_shrink() const {
  return packages_.residual.baked_batch() == 0 && packages_.jacobian.baked_batch() == 0 &&
         packages_.solve.baked_batch() == 0;
}

}  // namespace neml2_capi::model
