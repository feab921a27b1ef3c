// How the solution of an implicit segment depends on its givens and on promoted parameters, by the implicit function
// theorem: du/dg = -(dr/du)^-1 dr/dg.
#pragma once

#include <optional>
#include <vector>

#include "capi/segments/groups.h"
#include "capi/segments/operands.h"
#include "capi/segments/placed_pair.h"

namespace neml2_capi::model {

// The packages of the Newton step.
struct StepPackages {
  const Package* jacobian = nullptr;
  const Package* solve = nullptr;  // null with a Krylov solver
  const ParameterTail* tail = nullptr;
  std::size_t num_residuals = 0;  // groups

  // The blocks of dr/du, residual by residual.
  Vector<Tensor> linearize(const Operands& at) const;
};

class GivenSensitivity {
 public:
  GivenSensitivity(const artifact::Sensitivity& sensitivity, const StepPackages& step,
                   const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens, const Scope& scope);

  // One block per compiled pair or, where `all` are wanted, per pair of an unknown and a given.
  Vector<Block> run(const Operands& at, const Chunk& chunk, bool all) const;

  // Can one direction be had without the blocks? By one more Newton step, whose residual is its product with dr/dg.
  bool can_push_forward() const { return dense_ && step_.solve; }
  void push_forward(const Operands& at, const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
                    Directions& directions) const;

  const std::vector<PlacedPair>& pairs() const { return compiled_; }
  bool is_iterative() const { return krylov_.has_value(); }
  std::vector<const Package*> packages() const;

 private:
  Tensor solve_by_columns(const Vector<Tensor>& a, const Vector<Tensor>& b) const;

  Package operator_;
  std::optional<Package> solve_;
  std::optional<artifact::Krylov> krylov_;
  StepPackages step_;
  std::vector<PlacedPair> compiled_, all_;
  std::int64_t num_unknowns_ = 0, num_givens_ = 0;
  bool dense_ = true;  // no group has sub-batch axes
};

class ParameterSensitivity {
 public:
  // `groups`: how many groups of unknowns and givens the operator takes before the parameters.
  ParameterSensitivity(const artifact::Sensitivity& sensitivity, const std::vector<std::string>& parameters,
                       std::size_t groups, const Scope& scope);

  Vector<Block> run(const Operands& at, const Chunk& chunk) const;

  const std::vector<PlacedPair>& pairs() const { return pairs_; }
  bool is_iterative() const { return krylov_.has_value(); }
  std::vector<const Package*> packages() const;

 private:
  Package operator_;
  ParameterTail tail_;
  std::optional<Package> solve_;
  std::optional<artifact::Krylov> krylov_;
  std::vector<PlacedPair> pairs_;
};

}  // namespace neml2_capi::model
