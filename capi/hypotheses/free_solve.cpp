#include "capi/hypotheses/free_solve.h"

#include <algorithm>
#include <cstring>

#include "capi/evaluation/chunks.h"
#include "capi/evaluation/gathered.h"
#include "capi/evaluation/results.h"
#include "capi/evaluation/sums.h"

namespace neml2_capi::model {

FreeSolve::FreeSolve(const Plan& plan, const Routes& law, const Reduction& reduction, const Bindings& bindings,
                     const Range& range, LawMemory& memory)
    : plan(plan),
      law(law.model()),
      reduction(reduction),
      free(reduction.hypothesis().free),
      bindings(bindings),
      range(range),
      options(plan.options().in_one_thread().with_bounds_checked()),
      check(law.model(), plan.options()),
      memory(memory),
      arrays(law, reduction, bindings, range, memory) {}

void FreeSolve::add(std::int64_t p) {
  FreeStrain& each = points.emplace_back();
  each.point = p;
  if (reduction.free_before() < 0) return;
  const Points& before = bindings.inputs[static_cast<std::size_t>(reduction.free_before())];
  with_scalar(law.dtype(), [&]<class Scalar>(Scalar*) {
    const auto* from = reinterpret_cast<const Scalar*>(point(before, p, sizeof(Scalar)));
    for (std::size_t k = 0; k < free.size(); ++k) each.now[k] = static_cast<double>(from[k]);
  });
}

void FreeSolve::take(const Vector<std::size_t>& some) {
  taken_ = some;
  numbers_.clear();
  at_free_.clear();
  for (const std::size_t i : some) {
    numbers_.push_back(points[i].point);
    for (std::size_t k = 0; k < free.size(); ++k) at_free_.push_back(points[i].now[k]);
  }
  arrays.take(numbers_);
  arrays.give(Part::input, reduction.strain(), free.empty() ? nullptr : &at_free_);
}

void FreeSolve::evaluate() {
  const Tally found = arrays.evaluate(options);
  if (!found.reason.empty())
    tally.note(found.reason.c_str(), numbers_[static_cast<std::size_t>(found.reason_at)], found.cause);
  tally.rescue_failed |= found.rescue_failed;
}

void FreeSolve::look_at_bounds(std::size_t row, std::size_t count) {
  Vector<Exceeded> exceeded;
  const Range rows{static_cast<std::int64_t>(row), static_cast<std::int64_t>(count)};
  for (const BoundsCheck::Bad& bad : check.find(arrays.bindings(), rows, exceeded)) {
    FreeStrain& each = points[taken_[static_cast<std::size_t>(bad.point)]];
    each.status = NEML2_OUT_OF_BOUNDS;
    each.cut = bad.is_of_step ? 0.5 : 1.0;
  }
  for (Exceeded& found : exceeded) {
    found.point = numbers_[static_cast<std::size_t>(found.point)];
    model::add(tally.exceeded, found);
  }
}

void FreeSolve::report(const FreeStrain& each) const {
  const auto put = [&](int kind, auto value) {
    const Points& array = bindings.report[kind];
    if (array.data) std::memcpy(point(array, each.point, sizeof value), &value, sizeof value);
  };
  put(NEML2_REPORT_STATUS, each.status);
  put(NEML2_REPORT_ITERATIONS, each.iterations);
  put(NEML2_REPORT_RESIDUAL_NORM, each.norm);
  put(NEML2_REPORT_RESCUE_SOLVES, each.rescues);
  put(NEML2_REPORT_SUGGESTED_CUT, each.status == NEML2_OK ? 1.0 : each.cut);
}

// Points may fail after the law has converged: then there are iterates all the same, which are NaN.
void FreeSolve::make_iterates() const {
  const auto alone = range.turns ? range.turns->alone() : std::unique_lock<locks::FreedMutex>();
  const auto& unknowns = law.variables(Kind::unknown);
  for (std::size_t k = 0; k < unknowns.size(); ++k) iterates_of_all(bindings, k, unknowns[k]);
}

void FreeSolve::conclude() {
  const auto failed = [](const FreeStrain& each) { return each.status > NEML2_NON_FINITE; };
  if (bindings.unknowns && std::ranges::any_of(points, failed)) make_iterates();
  for (const FreeStrain& each : points) {
    report(each);
    tally.add_one(each.status, each.point);
    if (!failed(each)) continue;
    if (each.status != NEML2_OUT_OF_BOUNDS) tally.note({each.point, each.iterations, each.norm});
    if (!bindings.mark_failed) continue;
    for_each_result(plan.model(), bindings, [&](const Points& array, const Variable& variable, Part, std::size_t) {
      if (!is_one_value(array))
        fill_nan(point(array, each.point, itemsize(variable.dtype)), variable.dtype, variable.point_shape.product());
    });
  }
}

}  // namespace neml2_capi::model
