// Implicit segment: the unknowns that make the residual vanish, by Newton's method over compiled packages.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "capi/segments/graph_call.h"
#include "capi/segments/groups.h"
#include "capi/segments/segment.h"
#include "capi/segments/sensitivity.h"
#include "capi/segments/solver_packages.h"
#include "capi/segments/substep.h"

namespace neml2_capi::model {

class ImplicitSegment : public Segment {
 public:
  ImplicitSegment(const artifact::ImplicitSegment& segment, Scope& scope);

  Vector<Block> run(Chunk& chunk) const override;
  void run_along(Chunk& chunk, Directions& directions) const override;
  bool depends_on(std::size_t value) const override;
  const std::vector<std::size_t>& outputs() const override { return outputs_; }
  std::vector<const PairInfo*> pairs() const override;
  std::vector<const Package*> packages() const override;
  std::int64_t bytes_per_point() const override;
  std::vector<std::size_t> uniform_parameters() const override;

  // Steps of run(), for a caller with a solver of its own. The first predicts the unknowns, and packs them.
  Operands prepare(Chunk& chunk) const;
  // Returns the system to solve from there.
  std::unique_ptr<newton::System> system(Operands at, bool whole_batch) const;
  // Returns the blocks of dr/du, residual by residual. Throws NEML2_ERROR_UNSUPPORTED if no package gives them.
  Tensor jacobian(const Operands& at) const;
  // Returns dr/du v, if a package gives it.
  std::optional<Groups> matvec(const Operands& at, const Groups& v) const;
  // Returns the derivatives at a solution, as the chunk asks for them; `all`: not only those that were compiled.
  Vector<Block> differentiate(const Operands& at, const Chunk& chunk, bool all = false) const;
  // Hands the unknowns and what became of each point to the chunk, as the last step.
  void finish(Groups unknowns, newton::Reports reports, Chunk& chunk) const;
  void unpack(const Groups& unknowns, Chunk& chunk) const;

  const std::vector<ValueGroup>& unknowns() const { return unknowns_; }
  const std::string& name() const { return packages_.residual.name(); }
  // Throws NEML2_ERROR_UNSUPPORTED if the segment cannot be solved over tensors of a device.
  void require_device(Device device) const;
  bool has_given_sensitivity() const { return given_sensitivity_.has_value(); }

 private:
  // Loop of which the predictor is one pass: `output` becomes `input` of the next.
  struct Loop {
    std::size_t input, output;
    std::int64_t passes;
    Dims point_shape;
  };

  void check_packages(const artifact::ImplicitSegment& segment) const;
  void add_predictor(const artifact::ImplicitSegment& segment, Scope& scope);
  void predict(Chunk& chunk) const;
  void take_guesses(Operands& at, const Chunk& chunk) const;
  newton::Reports solve(Operands& at, const Chunk& chunk) const;
  void mark_failed(Groups& unknowns, const newton::Reports& reports, Chunk& chunk) const;

  SolverPackages packages_;
  DType dtype_;
  std::vector<ValueGroup> unknowns_, givens_;
  std::vector<std::size_t> outputs_;
  std::optional<GraphCall> predictor_;
  std::optional<Loop> loop_;
  std::optional<Sensitivity> given_sensitivity_, parameter_sensitivity_;
  std::optional<SubstepPlan> substeps_;
};

}  // namespace neml2_capi::model
