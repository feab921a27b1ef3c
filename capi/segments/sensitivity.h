// Derivatives of the solution of an implicit segment with respect to its givens, or to promoted parameters, by the
// implicit function theorem: du/dg = -(dr/du)^-1 dr/dg.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capi/segments/groups.h"
#include "capi/segments/placed_pair.h"
#include "capi/segments/solver_packages.h"

namespace neml2_capi::model {

class Sensitivity {
 public:
  // `solver`, which must outlive it, gives dr/du with respect to givens.
  Sensitivity(const artifact::Sensitivity& sensitivity, const SolverPackages& solver,
              const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
              const std::vector<std::string>& parameters, bool of_parameters, const Scope& scope);

  // Returns one block per compiled pair or, if `all` are wanted, per pair of an unknown and a given.
  Vector<Block> run(const Operands& at, const Chunk& chunk, bool all = false) const;

  // Tells whether one direction takes no blocks, but one more Newton step, whose residual is its product with dr/dg.
  bool can_push_forward() const { return operator_ && dense_ && solver_.solve; }
  void push_forward(const Operands& at, const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
                    Directions& directions) const;

  const std::vector<PlacedPair>& pairs() const { return compiled_; }
  bool is_iterative() const { return krylov_.has_value(); }
  std::vector<const Package*> packages() const;

 private:
  void add_all_pairs(const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
                     const Scope& scope);
  // Places the compiled pairs in the matrix of all unknowns by all givens or parameters, if no package does it.
  void place_pairs(const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
                   const std::vector<std::string>& parameters, const Scope& scope);
  Tensor solve_dense(const Tensor& a, const Tensor& b) const;
  // Returns dr/dg, residual by residual; of parameters dr/du and dr/dp.
  Vector<Tensor> operators(const Operands& at) const { return operator_->run(at.points(), at.inputs(tail_)); }
  Tensor solve_by_columns(const Vector<Tensor>& a, const Vector<Tensor>& b) const;

  const SolverPackages& solver_;
  std::optional<Package> operator_;  // none if the other one takes its inputs, and does it all
  std::optional<Package> solve_;     // none with a Krylov solver, or without packages
  std::optional<artifact::Krylov> krylov_;
  ParameterTail tail_;
  std::vector<PlacedPair> compiled_;
  // Pairs of all unknowns and givens, and the size of their matrix.
  std::vector<PlacedPair> all_;
  std::vector<Dims> residual_shapes_, unknown_shapes_, given_shapes_;  // if no package solves
  std::int64_t num_unknowns_ = 0, num_givens_ = 0;
  bool of_parameters_;
  std::set<std::size_t> interleaved_;  // values of groups in which variables stand site by site
  bool dense_ = true;                  // no group has sub-batch axes
};

}  // namespace neml2_capi::model
