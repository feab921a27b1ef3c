#include "capi/evaluation/bounded.h"

#include <algorithm>

#include "capi/base/error.h"
#include "capi/base/sort.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/sums.h"

namespace neml2_capi::model {

BoundsCheck::BoundsCheck(const Model& model, const Options& options)
    : model_(model), fails_(options.bounds() == Options::Bounds::fail) {
  if (options.bounds_are_checked() || model.is_around_another()) return;
  for (std::size_t b = 0; b < model.bounds().size(); ++b)
    if (model.bounds()[b].physical || options.bounds() != Options::Bounds::off) bounds_.push_back(b);
}

const Points& BoundsCheck::array_of(const Bindings& bindings, std::size_t bound) const {
  const Bound& of = model_.bounds()[bound];
  return (of.kind == Kind::input ? bindings.inputs : bindings.parameters)[of.variable];
}

template <class Counts>
void BoundsCheck::look(bool fails, const Bindings& bindings, const Range& range, Vector<Exceeded>& exceeded,
                       const Counts& counts) const {
  for (const std::size_t b : bounds_) {
    const Bound& bound = model_.bounds()[b];
    if ((fails_ || bound.physical) != fails) continue;
    const DType dtype = model_.variables(bound.kind)[bound.variable].dtype;
    const Points& array = array_of(bindings, b);
    if (!bound.is_exceeded(array, dtype, range.begin, range.points)) continue;
    Exceeded all{.bound = b, .fails = fails};
    for (std::int64_t p = range.begin; p < range.begin + range.points; ++p) {
      double value = 0;
      const std::int64_t component = bound.component_beyond(array, dtype, p, value);
      if (component < 0 || !counts(p, bound)) continue;
      if (all.points++ == 0) {
        all.point = p;
        all.component = component;
        all.value = value;
      }
    }
    if (all.points > 0) add(exceeded, all);
  }
}

Vector<BoundsCheck::Bad> BoundsCheck::find(const Bindings& bindings, const Range& range,
                                           Vector<Exceeded>& exceeded) const {
  Vector<Bad> bad;
  look(true, bindings, range, exceeded, [&](std::int64_t p, const Bound& bound) {
    bad.push_back({p, bound.is_of_step});
    return true;
  });
  // A point that fails for several bounds is there once, and a smaller step mends it if it mends all.
  heap_sort(bad, [](const Bad& a, const Bad& b) { return a.point < b.point; });
  Vector<Bad> once;
  for (const Bad& each : bad)
    if (once.empty() || once.back().point != each.point)
      once.push_back(each);
    else
      once.back().is_of_step &= each.is_of_step;
  // Points that fail are not evaluated beyond other bounds.
  look(false, bindings, range, exceeded,
       [&](std::int64_t p, const Bound&) { return !std::ranges::binary_search(once, p, {}, &Bad::point); });
  return once;
}

bool has_bounds(const Model& model, const Options& options) {
  return options.bounds() == Options::Bounds::off ? may_fail_for_bounds(model, options)
                                                  : !model.innermost().bounds().empty();
}

bool may_fail_for_bounds(const Model& model, const Options& options) {
  return std::ranges::any_of(model.innermost().bounds(), [&](const Bound& bound) {
    return bound.physical || options.bounds() == Options::Bounds::fail;
  });
}

void require_no_bounds(const Model& model, const Options& options) {
  if (may_fail_for_bounds(model, options))
    throw Error(NEML2_ERROR_UNSUPPORTED, "bounds",
                "Points that are beyond their bounds are to fail, and values on a device cannot be looked at. Give "
                "arrays of the host; or, unless the bounds are physical, set the option bounds to warn or off.");
}

void Bounded::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                  Tally& tally) const {
  Vector<Exceeded> exceeded;
  const Vector<BoundsCheck::Bad> bad = check_.find(bindings, range, exceeded);
  const auto keep = [&] {
    for (const Exceeded& each : exceeded) add(tally.exceeded, each);
  };
  if (bad.empty()) {
    route_.run(plan, bindings, range, workspace, tally);
    return keep();
  }
  Vector<LeftOut> left_out;
  for (const BoundsCheck::Bad& each : bad) left_out.push_back({each.point, each.cut()});
  run_without(left_out, plan, bindings, range, tally);
  keep();
}

void run_without(const Vector<LeftOut>& left_out, const Plan& plan, const Bindings& bindings, const Range& range,
                 Tally& tally) {
  const Model& model = plan.model();
  Bindings own = bindings;
  const Sums sums(model, bindings, range.begin, range.points);
  sums.replace(own);
  const auto evaluate = [&](const Bindings& others) {
    const Borrowed room(plan.routes());
    return Plan(plan.routes(), plan.options().in_one_thread(), Request(others)).evaluate(others, *room);
  };
  {
    const auto alone = range.turns && own.unknowns ? range.turns->alone() : std::unique_lock<locks::FreedMutex>();
    tally.add(evaluate_others(model, own, range.begin, range.begin + range.points, left_out, NEML2_OUT_OF_BOUNDS,
                              plan.options().miters(), evaluate));
  }
  if (!begin_sums(plan, bindings, range)) return;
  sums.write();
  end_sums(plan, range);
}

}  // namespace neml2_capi::model
