#include "capi/evaluation/gathered.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace neml2_capi::model {

Gathered::Gathered(const Model& model, const Bindings& of, Vector<std::int64_t> points, Wanted wanted,
                   std::int64_t miters)
    : points_(std::move(points)), rows_(0, std::ssize(points_)) {
  bindings.points = std::ssize(points_);
  bindings.mark_failed = of.mark_failed;
  bindings.input_first = of.input_first;
  bindings.copies.assign(of.inputs.size(), false);
  for (const Part part : all_parts) bindings.of(part).resize(of.of(part).size());
  for (const Part part : given_parts)
    for (std::size_t i = 0; i < of.of(part).size(); ++i)
      if (const Points& all = of.of(part)[i]; all.data)
        bindings.of(part)[i] = part != Part::input && is_one_value(all) ? all : gather(model.variable(part, i), all);
  const auto add_report = [&](int kind, const Dims& shape) {
    bindings.report[kind] = add({"", "", dtype_of_report(kind), shape, 0}, of.report[kind], true);
  };
  add_report(NEML2_REPORT_STATUS, {});
  bindings.report[NEML2_REPORT_ITERATIONS] = rows_.add({"", "", DType::int32, {}, 0}, false);
  if (wanted == Wanted::status) return;
  for_each_result(model, of, [&](const Points& all, const Variable& variable, Part part, std::size_t i) {
    bindings.of(part)[i] = add(variable, all, false);
  });
  for (const int kind : {NEML2_REPORT_RESIDUAL_NORM, NEML2_REPORT_RESIDUAL_HISTORY, NEML2_REPORT_SUGGESTED_CUT,
                         NEML2_REPORT_RESCUE_SOLVES})
    if (of.report[kind].data) add_report(kind, kind == NEML2_REPORT_RESIDUAL_HISTORY ? Dims{miters} : Dims());
}

void Gathered::add_slopes_and_guesses(const Model& model, const Bindings& of) {
  for (const Slope& slope : of.slopes) {
    const std::int64_t rows = model.variables(Kind::input)[slope.input].point_shape.product(),
                       columns = model.variables(slope.kind)[slope.variable].point_shape.product();
    Slope own = slope;
    if (slope.array.data && !is_one_value(slope.array))
      own.array = gather({"", "", model.dtype(), {rows, columns}, 0}, slope.array);
    bindings.slopes.push_back(own);
  }
  for (std::size_t k = 0; k < of.guesses.size(); ++k)
    bindings.guesses.push_back(of.guesses[k].data ? gather(model.variables(Kind::unknown)[k], of.guesses[k])
                                                  : Points());
  for (std::size_t i = 0; i < of.solution.size(); ++i)
    bindings.solution.push_back(of.solution[i].data ? gather(model.variables(Kind::output)[i], of.solution[i])
                                                    : Points());
}

// A result, which goes back to `all`.
Points Gathered::add(const Variable& variable, const Points& all, bool is_report) {
  const std::int64_t size = itemsize(variable.dtype);
  results_.push_back({all, rows_.add(variable, false), variable.point_shape.product() * size, size, is_report});
  return results_.back().own;
}

Points Gathered::gather(const Variable& variable, const Points& all) {
  const Points own = rows_.add(variable, false);
  const std::int64_t size = itemsize(variable.dtype);
  const auto bytes = static_cast<std::size_t>(variable.point_shape.product() * size);
  for (std::size_t i = 0; i < points_.size(); ++i)
    std::memcpy(model::point(own, static_cast<std::int64_t>(i), size), model::point(all, points_[i], size), bytes);
  return own;
}

void Gathered::write(std::size_t i, bool results) const {
  for (const Result& result : results_)
    if (result.all.data && (results || result.is_report))
      std::memcpy(model::point(result.all, points_[i], result.itemsize),
                  model::point(result.own, static_cast<std::int64_t>(i), result.itemsize),
                  static_cast<std::size_t>(result.bytes));
}

std::int32_t Gathered::number(int report, std::size_t i) const {
  return reinterpret_cast<const std::int32_t*>(bindings.report[report].data)[i];
}

}  // namespace neml2_capi::model
