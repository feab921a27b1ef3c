// Packages by which an implicit segment finds its unknowns.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "capi/segments/operands.h"

namespace neml2_capi::model {

// Residual, Jacobian and step take (unknowns, givens, parameters). A solver has some of the others.
struct SolverPackages {
  SolverPackages(const artifact::ImplicitSegment& segment, const Scope& scope);

  std::vector<const Package*> all() const;
  // Returns the blocks of dr/du, residual by residual.
  Vector<Tensor> linearize(const Operands& at) const;

  Package residual;
  std::optional<Package> jacobian;  // returns the blocks of the operator and then the residual, which
  std::optional<Package> solve;     // takes to return the Newton step
  std::optional<Package> step;      // instead of these two, before schema 12: artifact::ImplicitSegment::step_package
  bool step_is_taken;
  std::optional<Package> matvec;  // takes the inputs of the residual, then a direction
  std::optional<Package> setup;   // of the preconditioner: the inputs, with or without parameters -> its state
  std::optional<Package> apply;   // takes the state, then a flat residual, to return flat unknowns
  std::optional<artifact::Krylov> krylov;
  std::size_t num_residuals;  // groups
  ParameterTail tail;         // of the residual
  bool any_batch = true;      // false where one has a number of points compiled in
};

}  // namespace neml2_capi::model
