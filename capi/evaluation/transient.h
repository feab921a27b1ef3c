// A transient: points through several steps. A chunk of points goes through all of them before the next one begins, so
// that its history stays in the cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "capi/base/locks.h"
#include "capi/evaluation/plan.h"

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
  Bindings at(std::int64_t step) const;

  bool gives(const Request&, const Options&) const override { return true; }
  void check(const Options&, std::int64_t) const override {}
  ChunkSize chunk_size(const Options& options, const Request& request) const override;
  std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                            std::int64_t size) const override;
  // Takes the points of a range through all steps.
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  // An array of the bindings, of a part or of the report, and the bytes from a step to the next.
  struct Place {
    Part part = Part::input;
    bool is_report = false;
    std::size_t index = 0;
    std::int64_t bytes = 0;

    const Points& of(const Bindings& bindings) const {
      return is_report ? bindings.report[index] : bindings.of(part)[index];
    }
    Points& of(Bindings& bindings) const { return is_report ? bindings.report[index] : bindings.of(part)[index]; }
  };
  // An input with the value that `source` had some steps before.
  struct Carried {
    std::size_t input;
    Place source;
    std::vector<std::size_t> before;  // the inputs that have its values in the first steps
    std::int64_t age() const { return static_cast<std::int64_t>(before.size()); }
  };

  // The derivative of an input that is a history: the block of an output some steps before, or the derivative of a force. In
  // the first steps, as many as the history is old, it is one of `before`, which the caller gave; null: zero.
  struct CarriedSlope {
    std::size_t slope;
    Place source;
    const Slope* current;
    std::vector<const Slope*> before;
  };

  void add_histories();
  void add_slopes();
  void add_solutions();
  Place block_of(std::size_t output, const Slope& slope, std::int64_t age) const;
  void add_guesses();
  void add_places();
  Place place(Part part, std::size_t index) const;
  void check_source(const Carried& carried) const;
  // Tells whether a result is an input of later steps, or the derivative of one.
  bool is_carried(const Place& result) const;
  static bool is_in_place(const Carried& carried);
  void go_to(std::int64_t step, Bindings& bindings) const;
  static void keep(std::int64_t step, Vector<Exceeded>& exceeded, Tally& all);
  void note(std::int64_t step, const Tally& tally) const;
  void run_all(Workspace& workspace);
  void run_step_by_step(Workspace& workspace);

  const Plan& plan_;
  const Bindings& first_;
  std::vector<Carried> carried_;
  std::vector<CarriedSlope> carried_slopes_;
  // Histories that have the values of all unknowns, and their outputs; empty if they have not.
  std::vector<std::pair<std::size_t, std::size_t>> solutions_;
  std::vector<Place> moving_;  // with a step stride
  std::vector<Place> last_;    // written in the last step only
  std::int64_t steps_, bytes_per_point_ = 1;
  Tally all_;  // of all steps, as far as they are kept
  Vector<Exceeded> exceeded_;

  mutable std::atomic<std::int64_t> end_;  // the first step that was not good, as far as is known
  mutable locks::FreedMutex mutex_;        // guards the tally of that step
  mutable Tally tally_;
};

}  // namespace neml2_capi::model
