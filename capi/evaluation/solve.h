// Reverse communication: an evaluation that stops at each implicit segment, for the caller to solve it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "capi/evaluation/plan.h"
#include "capi/evaluation/through_segments.h"
#include "capi/segments/flat_system.h"

namespace neml2_capi::model {

class Solve {
 public:
  // Inputs and parameters are copied; the other arrays of the evaluation must stay where they are until finish(). All
  // points form one batch: throws NEML2_ERROR_SHAPE if the packages cannot take them as one.
  Solve(std::shared_ptr<const Routes> routes, Bindings bindings, const Options& options);

  // Go on to the next system; null at the end. Throws NEML2_ERROR_ARGUMENT if the last one was not accepted.
  FlatSystem* next();
  // The system that next() gave.
  FlatSystem& current();
  // The solution of the current system, and what became of each point; status and iterations may be null.
  void accept(const double* u, const std::int32_t* status, const std::int32_t* iterations);
  // Write the results. Throws NEML2_ERROR_ARGUMENT before the end.
  Tally finish();

  std::int64_t points() const { return bindings_.points; }
  const Model& model() const { return routes_->model(); }
  const Bindings& bindings() const { return bindings_; }

 private:
  void expect_accepted() const;
  void own(std::vector<Points>& arrays, Kind kind);

  std::shared_ptr<const Routes> routes_;
  Bindings bindings_;
  Vector<Tensor> copies_;  // of inputs and parameters, which the bindings lead to
  Plan plan_;
  ThroughSegments route_;
  Chunk chunk_;
  Vector<Vector<Block>> blocks_;  // of the segments that are done
  std::size_t unknowns_ = 0;      // of the implicit segments before the current one
  std::optional<FlatSystem> system_;
  bool accepted_ = false;
  bool judged_ = false;        // by statuses of the caller
  Vector<Exceeded> exceeded_;  // bounds
  Vector<BoundsCheck::Bad> bad_;
};

}  // namespace neml2_capi::model
