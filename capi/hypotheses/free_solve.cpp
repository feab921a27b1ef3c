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
      arrays(law, reduction, bindings, range, memory),
      routes_(law) {}

void FreeSolve::add(std::int64_t p) {
  FreeStrain& each = points.emplace_back();
  each.point = p;
  if (reduction.free_before() < 0) return;
  const Points& before = bindings.inputs[static_cast<std::size_t>(reduction.free_before())];
  const Numbers from(point(before, p, itemsize(law.dtype())), law.dtype());
  for (std::size_t k = 0; k < free.size(); ++k) each.now[k] = from[k];
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

void FreeSolve::evaluate(const Options& with) {
  const Tally found = arrays.evaluate(with);
  if (!found.reason.empty())
    tally.note(found.reason.c_str(), numbers_[static_cast<std::size_t>(found.reason_at)], found.cause);
  tally.note_means(found);
}

void FreeSolve::look_at_bounds(std::size_t row, std::size_t count) {
  if (law.is_around_another()) return look_within(row, count);
  Vector<Exceeded> exceeded;
  const Range rows{static_cast<std::int64_t>(row), static_cast<std::int64_t>(count)};
  for (const BoundsCheck::Bad& bad : check.find(arrays.bindings(), rows, exceeded))
    fail_for_bounds(points[taken_[static_cast<std::size_t>(bad.point)]], bad.cut());
  keep(exceeded, 0);
}

// Evaluates rows once more, now with their bounds: a view leaves it to its law to look at them.
void FreeSolve::look_within(std::size_t row, std::size_t count) {
  if (!has_bounds(law, plan.options())) return;
  Vector<std::int64_t> some;
  Vector<double> strains;
  for (std::size_t i = row; i < row + count; ++i) {
    const FreeStrain& each = points[taken_[i]];
    some.push_back(each.point);
    strains.insert(strains.end(), each.now.begin(), each.now.begin() + std::ssize(free));
  }
  LawMemory own;
  LawArrays within(routes_, reduction, bindings, range, own);
  within.take(some);
  within.give(Part::input, reduction.strain(), free.empty() ? nullptr : &strains);
  Tally found = within.evaluate(plan.options().in_one_thread());
  for (std::size_t i = 0; i < count; ++i) {
    const auto status = *reinterpret_cast<const std::int32_t*>(within.report(NEML2_REPORT_STATUS, i));
    const auto cut = *reinterpret_cast<const double*>(within.report(NEML2_REPORT_SUGGESTED_CUT, i));
    if (status == NEML2_OUT_OF_BOUNDS) fail_for_bounds(points[taken_[row + i]], cut);
  }
  keep(found.exceeded, row);
}

void FreeSolve::fail_for_bounds(FreeStrain& each, double cut) const {
  each.status = NEML2_OUT_OF_BOUNDS;
  each.cut = cut;
}

// Keeps what is exceeded, counted from a row on.
void FreeSolve::keep(Vector<Exceeded>& exceeded, std::size_t row) {
  for (Exceeded& found : exceeded) {
    found.point = numbers_[row + static_cast<std::size_t>(found.point)];
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
  begin_iterates(law, bindings);
}

void FreeSolve::conclude() {
  const auto failed = [](const FreeStrain& each) { return each.status > NEML2_NON_FINITE; };
  if (bindings.unknowns && std::ranges::any_of(points, failed)) make_iterates();
  for (const FreeStrain& each : points) {
    report(each);
    tally.add_one(each.status, each.point);
    if (!failed(each)) continue;
    // A point without a residual was refused before any solve, and the reason says why.
    if (each.status != NEML2_OUT_OF_BOUNDS && each.norm != 0) tally.note({each.point, each.iterations, each.norm});
    if (bindings.mark_failed) fill_with_nan(each);
  }
}

void FreeSolve::fill_with_nan(const FreeStrain& each) const {
  for_each_result(plan.model(), bindings, [&](const Points& array, const Variable& variable, Part, std::size_t) {
    if (!is_one_value(array))
      fill_nan(point(array, each.point, itemsize(variable.dtype)), variable.dtype, variable.point_shape.product());
  });
}

}  // namespace neml2_capi::model
