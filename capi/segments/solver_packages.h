// Packages by which an implicit segment finds its unknowns.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "capi/segments/operands.h"

namespace neml2_capi::model {

// Packages of a solver, which has the residual and some of the others. Arguments are (unknowns, givens, parameters).
struct SolverPackages {
  SolverPackages(const artifact::ImplicitSegment& segment, const Scope& scope);

  std::vector<const Package*> all() const;
  // Returns the blocks of dr/du, residual by residual.
  Vector<Tensor> linearize(const Operands& at) const;
  std::vector<Dims> residual_shapes() const;

  Package residual;                 // arguments -> -r
  std::optional<Package> jacobian;  // arguments -> blocks of dr/du, -r
  std::optional<Package> solve;     // blocks of dr/du, -r -> Newton step
  std::optional<Package> step;      // in place of these two, before schema 12: artifact::ImplicitSegment::step_package
  bool step_is_taken;
  std::optional<Package> matvec;  // arguments, direction -> its product with dr/du
  std::optional<Package> setup;   // arguments, with or without parameters -> state of the preconditioner
  std::optional<Package> apply;   // state of the preconditioner, flat residual -> flat unknowns
  std::optional<artifact::Krylov> krylov;
  std::size_t num_residuals;  // groups
  ParameterTail tail;         // of the residual
  bool any_batch = true;      // false if one has a number of points compiled in
};

}  // namespace neml2_capi::model
