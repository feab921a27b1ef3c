// Reports of a block: whether its points are finite, what the caller's arrays of reports hold, and counts of statuses.
#pragma once

#include "capi/kernels/points_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

template <class T>
class Reports {
 public:
  Reports(const PointsInLanes<T>& points, BlockReport<T>& report) : p_(points), report_(report) {}

  void start() const {
    report_.restart(p_.begin, p_.used);
    const model::Points& history = p_.walk.report[NEML2_REPORT_RESIDUAL_HISTORY];
    if (!history.data) return;
    report_.history = p_.template at<double>(history);
    report_.history_stride = history.stride;
    clear(history, p_.used);
  }

  // Returns the bits of all values and derivatives.
  [[gnu::always_inline]] Mask<T> bits_of_results() const {
    Mask<T> found{};
    for (const Bound& output : p_.walk.outputs) found |= bits_of(output);
    for (const Matrix& block : p_.walk.blocks) found |= bits_of(block);
    return found;
  }

  // Notes lanes with a number that is not finite, among those that are given or found, by the rule of model::Marks.
  void note_non_finite(const Mask<T>& given, const Mask<T>& found, model::Counts& counts) const {
    if (!any(given) && !any(report_.status) && !any(found)) return;
    const WideMask<T> bad = __builtin_convertvector(found, WideMask<T>);
    report_.status = (bad & (report_.status == newton::ok)) ? InLanes<T>::status(newton::non_finite) : report_.status;
    for (int l = 0; l < p_.used; ++l) {
      const bool has_failed = report_.has_failed(l);
      if (given[l] && (has_failed || gives_nan(l))) report_.status[l] = newton::non_finite;
      if (has_failed && given[l]) report_.lost[l] = -1;
      if (has_failed && (given[l] || is_step_of_zero(l))) report_.suggested_cut[l] = 1.0;
      if (report_.status[l] == newton::non_finite && counts.non_finite.point < 0)
        counts.non_finite = {p_.begin + l, reason(l, given[l] != 0)};
    }
  }

  // Leaves lanes that have not converged, or are not good, to what evaluates them otherwise.
  void leave_others(const Mask<T>& good_lanes) const {
    const WideMask<T> good = __builtin_convertvector(good_lanes, WideMask<T>);
    report_.status = (good & (report_.status == newton::ok)) ? report_.status : InLanes<T>::status(NEML2_NOT_CONVERGED);
  }

  void write(model::Counts& counts) const {
    write_array<std::int32_t>(NEML2_REPORT_STATUS, report_.status);
    write_array<std::int32_t>(NEML2_REPORT_ITERATIONS, report_.iterations);
    write_array<double>(NEML2_REPORT_RESIDUAL_NORM, report_.residual_norm);
    write_array<double>(NEML2_REPORT_SUGGESTED_CUT, report_.suggested_cut);
    if (!any(report_.status)) return count_good(counts, p_.begin, p_.used);
    for (int l = 0; l < p_.used; ++l) {
      const std::int64_t status = report_.status[l];
      if (counts.count[status]++ == 0) counts.first[status] = p_.begin + l;
      if (status > newton::non_finite && counts.failed.point < 0)
        counts.failed = {p_.begin + l, report_.iterations[l], report_.residual_norm[l]};
    }
  }

  // Writes the reports of so many points from the first of the block on, for which nothing was solved.
  void write_good(std::int64_t points) const {
    fill_array<std::int32_t>(NEML2_REPORT_STATUS, newton::ok, points);
    fill_array<std::int32_t>(NEML2_REPORT_ITERATIONS, 0, points);
    fill_array<double>(NEML2_REPORT_RESIDUAL_NORM, 0.0, points);
    fill_array<double>(NEML2_REPORT_SUGGESTED_CUT, 1.0, points);
    const model::Points& history = p_.walk.report[NEML2_REPORT_RESIDUAL_HISTORY];
    if (history.data) clear(history, points);
  }

  static void count_good(model::Counts& counts, std::int64_t begin, std::int64_t points) {
    if (counts.count[newton::ok] == 0) counts.first[newton::ok] = begin;
    counts.count[newton::ok] += points;
  }

 private:
  Mask<T> bits_of(const Bound& output) const { return bits(p_.scratch[output.at], output.components); }
  [[gnu::always_inline]] Mask<T> bits_of(const Matrix& block) const {
    Mask<T> found{};
    if (block.at == nowhere) return found;
    const Lanes<T>* const values = p_.scratch[block.at];
    if (block.row_stride == block.columns) return bits(values, block.sites * block.rows * block.columns);
    for (std::int64_t row = 0; row < block.sites * block.rows; ++row)
      found |= bits(values + row * block.row_stride, block.columns);
    return found;
  }
  [[gnu::always_inline]] static Mask<T> bits(const Lanes<T>* values, std::int64_t components) {
    return NML2_INSTRUCTION_SET::bits_of<T>(values, components);
  }

  bool gives_nan(int l) const {
    for (const Bound& input : p_.walk.inputs)
      for (std::int64_t c = 0; c < input.components; ++c)
        if (const T x = p_.at(input.array, l)[c]; x != x) return true;
    return false;
  }

  bool is_step_of_zero(int l) const {
    if (report_.iterations[l] != 0 || report_.residual_norm[l] - report_.residual_norm[l] == 0.0) return false;
    for (const Increment& step : p_.walk.increments)
      if (*p_.at(step.now, l) == *p_.at(step.before, l)) return true;
    return false;
  }

  // The first array that is not finite in a lane.
  model::Named reason(int l, bool given) const {
    if (given)
      for (const Bound& input : p_.walk.inputs)
        for (std::int64_t c = 0; c < input.components; ++c)
          if (const T x = p_.at(input.array, l)[c]; x - x != T(0)) return input.named;
    for (const Bound& output : p_.walk.outputs)
      if (non_finite_in<T>(bits_of(output))[l]) return output.named;
    for (const Matrix& block : p_.walk.blocks)
      if (non_finite_in<T>(bits_of(block))[l]) return block.named;
    return {};
  }

  // Sets the residual norms of so many points, none of which is known.
  void clear(const model::Points& history, std::int64_t points) const {
    double* row = p_.template at<double>(history);
    for (std::int64_t p = 0; p < points; ++p, row += history.stride)
      for (std::int64_t i = 0; i < p_.walk.rules.miters; ++i) row[i] = no_number<double>;
  }

  template <class X, class Values>
  void write_array(int which, const Values& values) const {
    const model::Points& array = p_.walk.report[which];
    if (!array.data) return;
    for (int l = 0; l < p_.used; ++l) *p_.template at<X>(array, l) = static_cast<X>(values[l]);
  }

  template <class X>
  [[gnu::always_inline]] void fill_array(int which, X value, std::int64_t points) const {
    const model::Points& array = p_.walk.report[which];
    if (!array.data) return;
    X* to = p_.template at<X>(array);
    if (array.stride == 1 && value == 0)
      __builtin_memset(to, 0, static_cast<std::size_t>(points) * sizeof(X));
    else
      for (std::int64_t p = 0; p < points; ++p, to += array.stride) *to = value;
  }

  const PointsInLanes<T>& p_;
  BlockReport<T>& report_;
};

}  // namespace
}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
