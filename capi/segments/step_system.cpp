#include "capi/segments/step_system.h"

#include <utility>

#include "capi/tensor/rows.h"

namespace neml2_capi::model {

Vector<Tensor> StepSystem::inputs(const Groups& u) {
  at_.unknowns = u;
  return at_.inputs(packages_.tail);
}

Groups StepSystem::residual(const Groups& u) {
  return row_major(packages_.residual.run(u.front().sizes()[0], inputs(u)));
}

Groups StepSystem::quick_residual(const Groups& u, const Vector<std::int64_t>& rows) {
  const Operands at = select({u, at_.givens, at_.parameters}, rows);
  return row_major(packages_.residual.run(at.points(), at.inputs(packages_.tail)));
}

Groups StepSystem::linearize(const Groups& u) {
  const std::int64_t points = u.front().sizes()[0];
  aoti::SingularInfo info;
  Groups outputs = row_major(packages_.step.run(points, inputs(u), &info));
  singular_ = by_point(info, points);
  singular_on_device_ = std::move(info.on_device);
  const auto end = outputs.begin() + static_cast<std::ptrdiff_t>(u.size());
  step_.assign(outputs.begin(), end);
  if (!packages_.step_is_taken) return Groups(end, outputs.end());
  // What the package says of the residual is said of the unknowns after the step.
  step_ = advance(step_, Vector<double>(static_cast<std::size_t>(points), -1.0), u);
  return residual(u);
}

Groups StepSystem::step(Vector<std::int32_t>& singular) {
  singular = singular_;
  return std::exchange(step_, {});
}

void StepSystem::keep(const Vector<std::int64_t>& rows) {
  at_.givens = select_rows(at_.givens, rows);
  at_.parameters = select_rows(at_.parameters, rows);
  if (step_.empty()) return;
  step_ = select_rows(step_, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) singular_[i] = singular_[static_cast<std::size_t>(rows[i])];
  singular_.resize(rows.size());
}

bool StepSystem::can_shrink() const {
  return packages_.residual.baked_batch() == 0 && packages_.step.baked_batch() == 0;
}

}  // namespace neml2_capi::model
