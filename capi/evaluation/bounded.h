// Bounds of what an evaluation is given. Points that are beyond a bound for which they fail are left out, and the others
// are evaluated without them.
#pragma once

#include "capi/evaluation/others.h"
#include "capi/evaluation/route_around.h"

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
    double cut() const { return is_of_step ? 0.5 : 1.0; }
  };
  // Returns the points that fail, in their order, and adds what is exceeded. It allocates nothing if nothing is.
  Vector<Bad> find(const Bindings& bindings, const Range& range, Vector<Exceeded>& exceeded) const;

 private:
  const Points& array_of(const Bindings& bindings, std::size_t bound) const;
  // Adds what is beyond bounds for which points fail, or beyond the others, of the points that count.
  template <class Counts>
  void look(bool fails, const Bindings& bindings, const Range& range, Vector<Exceeded>& exceeded,
            const Counts& counts) const;

  const Model& model_;
  bool fails_;                  // for bounds of validity, too
  Vector<std::size_t> bounds_;  // that count, by position
};

// Tells whether options make evaluations look at bounds of the innermost law.
bool has_bounds(const Model& model, const Options& options);
// Tells whether points may fail for bounds.
bool may_fail_for_bounds(const Model& model, const Options& options);

// Evaluates a range without points that fail for bounds.
void run_without(const Vector<LeftOut>& left_out, const Plan& plan, const Bindings& bindings, const Range& range,
                 Tally& tally);

// Throws NEML2_ERROR_UNSUPPORTED if points may fail for bounds: what is given lies on a device.
void require_no_bounds(const Model& model, const Options& options);

// Route around another one.
class Bounded final : public RouteAround {
 public:
  // Both must outlive it.
  Bounded(const Route& route, const Model& model, const Options& options)
      : RouteAround(route), check_(model, options) {}

  bool is_needed() const { return check_.is_needed(); }
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  BoundsCheck check_;
};

}  // namespace neml2_capi::model
