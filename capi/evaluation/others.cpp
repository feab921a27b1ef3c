#include "capi/evaluation/others.h"

#include <algorithm>
#include <cstring>

#include "capi/evaluation/gathered.h"
#include "capi/evaluation/results.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

template <class T>
void report(const Bindings& bindings, int kind, std::int64_t p, T value) {
  if (const Points& array = bindings.report[kind]; array.data)
    std::memcpy(point(array, p, sizeof(T)), &value, sizeof(T));
}

Vector<std::int64_t> points_but(std::int64_t begin, std::int64_t end, const Vector<LeftOut>& left_out) {
  Vector<std::int64_t> others;
  auto next = left_out.begin();
  for (std::int64_t p = begin; p < end; ++p)
    if (next != left_out.end() && next->point == p)
      ++next;
    else
      others.push_back(p);
  return others;
}

Tally evaluate_points(const Model& model, const Bindings& bindings, Vector<std::int64_t> points, std::int64_t miters,
                      const std::function<Tally(const Bindings&)>& evaluate) {
  const std::size_t count = points.size();
  // Packages of a fixed batch take whole ones.
  const std::int64_t batch = std::max<std::int64_t>(model.baked_batch(), 1);
  while (std::ssize(points) % batch != 0) points.push_back(points.back());
  Gathered some(model, bindings, points, Gathered::Wanted::results, miters);
  some.add_slopes_and_guesses(model, bindings);
  Vector<Tensor> unknowns(model.variables(Kind::unknown).size());
  if (bindings.unknowns) some.bindings.unknowns = &unknowns;
  Tally found = evaluate(some.bindings);
  found.renumber([&](std::int64_t p) { return some.point(static_cast<std::size_t>(p)); });
  std::fill_n(found.count, num_statuses, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t p = some.point(i);
    found.add_one(some.status(i), p);
    some.status(i) > NEML2_NON_FINITE && !bindings.mark_failed ? some.write_reports(i) : some.write(i);
    report(bindings, NEML2_REPORT_ITERATIONS, p, some.iterations(i));
    for (std::size_t k = 0; k < unknowns.size(); ++k)
      if (unknowns[k].data()) {
        Groups all = {iterates_of_all(bindings, k, model.variables(Kind::unknown)[k])};
        copy_row({unknowns[k]}, static_cast<std::int64_t>(i), all, p);
      }
  }
  return found;
}

}  // namespace

Tally evaluate_others(const Model& model, const Bindings& bindings, std::int64_t begin, std::int64_t end,
                      const Vector<LeftOut>& left_out, std::int32_t status, std::int64_t miters,
                      const std::function<Tally(const Bindings&)>& evaluate) {
  Tally tally;
  Vector<std::int64_t> others = points_but(begin, end, left_out);
  if (!others.empty()) tally = evaluate_points(model, bindings, std::move(others), miters, evaluate);
  begin_iterates(model, bindings);  // NaN: there was no iterate at these points
  for (const LeftOut& each : left_out) {
    report(bindings, NEML2_REPORT_STATUS, each.point, status);
    report(bindings, NEML2_REPORT_ITERATIONS, each.point, std::int32_t{0});
    report(bindings, NEML2_REPORT_RESIDUAL_NORM, each.point, 0.0);
    report(bindings, NEML2_REPORT_SUGGESTED_CUT, each.point, each.cut);
    if (const Points& history = bindings.report[NEML2_REPORT_RESIDUAL_HISTORY]; history.data)
      fill_nan(point(history, each.point, sizeof(double)), DType::float64, miters);
    tally.add_one(status, each.point);
    if (!bindings.mark_failed) continue;
    for_each_result(model, bindings, [&](const Points& array, const Variable& variable, Part, std::size_t) {
      if (!is_one_value(array))
        fill_nan(point(array, each.point, itemsize(variable.dtype)), variable.dtype, variable.point_shape.product());
    });
  }
  return tally;
}

}  // namespace neml2_capi::model
