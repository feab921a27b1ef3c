// Bounds of what an evaluation is given. Points that are beyond a bound for which they fail are left out, and the others
// are evaluated without them.
#pragma once

#include "capi/evaluation/route.h"

namespace neml2_capi::model {

// The bounds that options make an evaluation look at.
class BoundsCheck {
 public:
  BoundsCheck(const Model& model, const Options& options);

  bool is_needed() const { return !bounds_.empty(); }

  // A point that fails, and whether a smaller step may mend it.
  struct Bad {
    std::int64_t point;
    bool is_of_step;
  };
  // Returns the points that fail, in their order, and adds what is exceeded. It allocates nothing if nothing is.
  Vector<Bad> find(const Bindings& bindings, const Range& range, Vector<Exceeded>& exceeded) const;

 private:
  const Points& array_of(const Bindings& bindings, std::size_t bound) const;

  const Model& model_;
  bool fails_;                  // for bounds of validity, too
  Vector<std::size_t> bounds_;  // that count, by position
};

// Tells whether points may fail for bounds.
bool may_fail_for_bounds(const Model& model, const Options& options);

// Throws NEML2_ERROR_UNSUPPORTED if points may fail for bounds: what is given lies on a device.
void require_no_bounds(const Model& model, const Options& options);

// Route around another one.
class Bounded final : public Route {
 public:
  // Both must outlive it.
  Bounded(const Route& route, const Model& model, const Options& options) : route_(route), check_(model, options) {}

  bool is_needed() const { return check_.is_needed(); }

  bool gives(const Request& request, const Options& options) const override { return route_.gives(request, options); }
  void check(const Options& options, std::int64_t points) const override { route_.check(options, points); }
  ChunkSize chunk_size(const Options& options, const Request& request) const override {
    return route_.chunk_size(options, request);
  }
  std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                            std::int64_t size) const override {
    return route_.end_of_range(options, bindings, begin, size);
  }
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  const Route& route_;
  BoundsCheck check_;
};

}  // namespace neml2_capi::model
