#include "capi/model/direct_system.h"

#include <utility>

namespace neml2_capi::model {

Vector<Tensor> DirectSystem::inputs(const newton::Groups& u) {
  at_.unknowns = u;
  return at_.inputs(packages_.tail);
}

newton::Groups DirectSystem::residual(const newton::Groups& u) {
  return row_major(packages_.residual.run(u.front().sizes()[0], inputs(u)));
}

newton::Groups DirectSystem::quick_residual(const newton::Groups& u, const Vector<std::int64_t>& rows) {
  const Operands at = select({u, at_.givens, at_.parameters}, rows);
  return row_major(packages_.residual.run(at.points(), at.inputs(packages_.tail)));
}

newton::Groups DirectSystem::linearize(const newton::Groups& u) {
  operator_ = row_major(packages_.jacobian.run(u.front().sizes()[0], inputs(u)));
  return newton::Groups(operator_.end() - static_cast<std::ptrdiff_t>(packages_.num_residuals), operator_.end());
}

newton::Groups DirectSystem::step(Vector<std::int32_t>& singular) {
  const std::int64_t points = operator_.front().sizes()[0];
  aoti::SingularInfo info;
  newton::Groups du = row_major(packages_.solve.run(points, std::exchange(operator_, {}), &info));
  singular = by_point(info, points);
  singular_on_device_ = std::move(info.on_device);
  return du;
}

void DirectSystem::keep(const Vector<std::int64_t>& rows) {
  at_.givens = newton::select_rows(at_.givens, rows);
  at_.parameters = newton::select_rows(at_.parameters, rows);
  operator_ = newton::select_rows(operator_, rows);
}

bool DirectSystem::can_shrink() const {
  return packages_.residual.baked_batch() == 0 && packages_.jacobian.baked_batch() == 0 &&
         packages_.solve.baked_batch() == 0;
}

}  // namespace neml2_capi::model
