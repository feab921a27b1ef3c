#include "capi/segments/solver_packages.h"

namespace neml2_capi::model {
SolverPackages::SolverPackages(const artifact::ImplicitSegment& segment, const Scope& scope)
    : residual(scope.load(segment.residual_package)),
      jacobian(scope.load_if_named(segment.jacobian_package)),
      solve(scope.load_solver(segment.solve_package, segment.jacobian_package, segment.residuals.size())),
      step(scope.load_if_named(segment.step_package)),
      step_is_taken(segment.step_is_taken),
      matvec(scope.load_if_named(segment.matvec_package)),
      setup(scope.load_if_named(segment.preconditioner_setup_package)),
      apply(scope.load_if_named(segment.preconditioner_apply_package)),
      krylov(segment.krylov),
      num_residuals(segment.residuals.size()) {
  for (const Package* package : all()) any_batch = any_batch && package->baked_batch() == 0;
}

std::vector<const Package*> SolverPackages::all() const {
  std::vector<const Package*> packages = {&residual};
  for (const auto* package : {&jacobian, &solve, &step, &matvec, &setup, &apply})
    if (*package) packages.push_back(&**package);
  return packages;
}

std::vector<Dims> SolverPackages::residual_shapes() const {
  std::vector<Dims> shapes;
  for (std::size_t i = 0; i < num_residuals; ++i) shapes.push_back(residual.output_shape(i));
  return shapes;
}

Vector<Tensor> SolverPackages::linearize(const Operands& at) const {
  Vector<Tensor> blocks = jacobian->run(at.points(), at.inputs(tail));
  blocks.resize(blocks.size() - num_residuals);
  return blocks;
}

}  // namespace neml2_capi::model
