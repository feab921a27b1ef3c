// A transient: points through several steps. A chunk of points goes through all of them before the next one begins, so
// that its history stays in the cache.
#pragma once

#include <atomic>
#include <cstdint>

#include "capi/base/locks.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/step_arrays.h"

namespace neml2_capi::model {

class Transient final : public Route {
 public:
  // `first` are the arrays of the first step. Both must outlive it. Throws NEML2_ERROR_MISSING, _SHAPE or _UNSUPPORTED if
  // history cannot be carried from step to step.
  Transient(const Plan& plan, const Bindings& first);

  // Makes steps until one is not NEML2_OK at all points. Returns the counts of that step, or of the last one.
  Tally run(Workspace& workspace);
  // The number of steps that all points made with NEML2_OK.
  std::int64_t made() const { return end_.load(std::memory_order_relaxed); }
  // The bounds that the run went beyond, in all steps.
  const Vector<Exceeded>& exceeded() const { return exceeded_; }
  // The arrays of a step.
  Bindings at(std::int64_t step) const { return arrays_.at(step); }

  ChunkSize chunk_size(const Options& options, const Request& request) const override;
  std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                            std::int64_t size) const override;
  // Takes the points of a range through all steps.
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  static void keep(std::int64_t step, Vector<Exceeded>& exceeded, Tally& all);
  void note(std::int64_t step, const Tally& tally) const;
  void run_all(Workspace& workspace);
  void run_blocks(Workspace& workspace);
  void run_step_by_step(Workspace& workspace);

  const Plan& plan_;
  const Bindings& first_;
  StepArrays arrays_;
  std::int64_t steps_;
  Tally all_;  // of all steps, as far as they are kept
  Vector<Exceeded> exceeded_;

  mutable std::atomic<std::int64_t> end_;  // the first step that was not good, as far as is known
  mutable locks::FreedMutex mutex_;        // guards the tally of that step
  mutable Tally tally_;
};

}  // namespace neml2_capi::model
