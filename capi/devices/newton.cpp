#include "capi/devices/newton.h"

#include <limits>
#include <utility>

#include "capi/base/interrupt.h"
#include "capi/graph/algebra.h"
#include "capi/newton/rules.h"
#include "capi/segments/operands.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {
namespace {

using namespace algebra;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Returns a value of each point, (points,), as a factor or a mask of rows.
Tensor beside(const Tensor& per_point, const Tensor& rows) {
  Dims sizes = per_point.sizes();
  while (sizes.size() < rows.ndim()) sizes.push_back(1);
  return shaped(per_point, sizes);
}

// Returns a . b, row by row.
Tensor dot(const Groups& a, const Groups& b) {
  Tensor total;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor products = sum(shaped(multiply(a[i], b[i]), {a[i].sizes()[0], row_size(a[i])}), {1}, false);
    total = total.data() ? add(total, products) : products;
  }
  return converted(total, DType::float64);
}

Tensor norm(const Groups& rows) { return square_root(dot(rows, rows)); }

// Value or mask for each point, or a number for all, with the operators of a number.
struct PerPoint {
  PerPoint(Tensor each) : values(std::move(each)) {}
  PerPoint(double one) : number(one) {}

  Tensor values;
  double number = 0.0;  // if there are no values
};

PerPoint operator<(const PerPoint& a, double b) { return less(a.values, b); }
PerPoint operator<(const PerPoint& a, const PerPoint& b) { return less(a.values, b.values); }
PerPoint operator<=(const PerPoint& a, double b) { return at_most(a.values, b); }
PerPoint operator<=(const PerPoint& a, const PerPoint& b) { return at_most(a.values, b.values); }
PerPoint operator==(const PerPoint& a, double b) { return equal(a.values, b); }
PerPoint operator&(const PerPoint& a, const PerPoint& b) { return both(a.values, b.values); }
PerPoint operator|(const PerPoint& a, const PerPoint& b) { return either(a.values, b.values); }
// Integers become numbers, which add() knows, and come back.
PerPoint operator+(const PerPoint& a, const PerPoint& b) {
  const auto number = [](const Tensor& values) { return converted(values, DType::float64); };
  return converted(add(number(a.values), number(b.values)), a.values.dtype());
}
PerPoint operator-(const PerPoint& a, const PerPoint& b) { return subtract(a.values, b.values); }
PerPoint operator*(const PerPoint& a, double b) { return multiply(a.values, b); }
PerPoint operator*(const PerPoint& a, const PerPoint& b) { return multiply(a.values, b.values); }
PerPoint operator/(const PerPoint& a, const PerPoint& b) { return divide(a.values, b.values); }

// Numbers of the rules: tensors with a value for each point.
struct OnDevice {
  using Norm = PerPoint;
  using Mask = PerPoint;
  using Status = PerPoint;

  static Norm number(double value) { return value; }
  static Status status(std::int64_t value) { return static_cast<double>(value); }
  static PerPoint is_finite(const PerPoint& norm) { return finite(norm.values); }
  static PerPoint choose(const PerPoint& mask, const PerPoint& if_true, const PerPoint& if_false) {
    if (if_true.values.data() && if_false.values.data())
      return algebra::choose(mask.values, if_true.values, if_false.values);
    if (if_true.values.data()) return algebra::choose(negated(mask.values), if_false.number, if_true.values);
    if (if_false.values.data()) return algebra::choose(mask.values, if_true.number, if_false.values);
    const Tensor all = filled(DType::float64, mask.values.sizes(), if_false.number, mask.values.device());
    return algebra::choose(mask.values, if_true.number, all);
  }
};

using Rules = newton::Rules<OnDevice>;

class Iteration {
 public:
  Iteration(newton::System& system, Groups& u, const newton::Settings& settings)
      : system_(system), settings_(settings), u_(u), points_(u.front().sizes()[0]), device_(u.front().device()) {}

  DeviceOutcome run() {
    const auto integers = [&](double value) { return filled(DType::int32, {points_}, value, device_); };
    outcome_ = DeviceOutcome::none(points_, device_);
    outcome_.status = integers(NEML2_NOT_CONVERGED);
    left_ = equal(outcome_.iterations, 0.0);
    settled_ = left_;
    singular_ = negated(left_);
    evaluate();
    outcome_.initial_norm = norm_;
    record(0);
    for (std::int64_t i = 1; i < settings_.miters && any(left_); ++i) {
      interrupt::check();
      step();
      record(i);
    }
    const Tensor failed = outcome_.failed();
    outcome_.any_failed = any(failed);
    const PerPoint cut = Rules::suggested_cut(outcome_.initial_norm, outcome_.residual_norm);
    outcome_.suggested_cut = choose(failed, cut.values, outcome_.suggested_cut);
    if (settings_.keep_history) keep_history();
    return std::move(outcome_);
  }

 private:
  bool line_search() const { return settings_.ls_max_iters > 1; }

  // Finds the residual. It comes with the operator for the next step if every iterate is accepted as it is.
  void evaluate() {
    residual_ = line_search() ? system_.residual(u_) : system_.linearize(u_);
    norm_ = norm(residual_);
  }

  void step() {
    if (line_search()) system_.linearize(u_);
    Vector<std::int32_t> unread;
    const Groups du = system_.step(unread);
    note_singular();
    if (line_search()) return search_along(du);
    Groups next;
    for (std::size_t i = 0; i < u_.size(); ++i) next.push_back(add(u_[i], du[i]));
    accept(next);
    evaluate();
  }

  void accept(const Groups& next) {
    for (std::size_t i = 0; i < u_.size(); ++i) u_[i] = choose(beside(left_, next[i]), next[i], u_[i]).row_major();
  }

  // Notes the points of singular matrices. A solve has one per point, or several one beside the other.
  void note_singular() {
    singular_ = filled(DType::boolean, {points_}, 0.0, device_);
    for (const Tensor& info : system_.singular_on_device()) {
      const Tensor regular = shaped(equal(info, 0.0), {points_, info.numel() / points_});
      const Tensor here = less(filled(DType::float64, {points_}, 0.5, device_),
                               sum(converted(negated(regular), DType::float64), {1}, false));
      singular_ = either(singular_, here);
    }
  }

  // Cuts the step of each point until its residual has decreased enough. The last trial is taken in any case.
  void search_along(const Groups& du) {
    const Tensor slope = dot(residual_, du), before = norm_;
    Tensor alpha = filled(DType::float64, {points_}, 1.0, device_);
    const Tensor cutback = filled(DType::float64, {points_}, settings_.ls_cutback, device_);
    for (std::int64_t trial = 1;; ++trial) {
      Groups next;
      for (std::size_t i = 0; i < u_.size(); ++i)
        next.push_back(add(u_[i], multiply(converted(beside(alpha, du[i]), du[i].dtype()), du[i])));
      residual_ = system_.residual(row_major(next));
      norm_ = norm(residual_);
      const PerPoint enough = Rules::has_decreased(norm_, before, alpha, slope, settings_);
      const Tensor cut = both(left_, negated(enough.values));
      if (trial + 1 >= settings_.ls_max_iters || !any(cut)) return accept(next);
      alpha = choose(cut, divide(alpha, cutback), alpha);
    }
  }

  // Notes where each point stands after iteration `i`; those that are done are left alone.
  void record(std::int64_t i) {
    const PerPoint found_as_numbers = Rules::verdict(norm_, outcome_.initial_norm, singular_, settled_, settings_);
    const Tensor found = converted(found_as_numbers.values, DType::int32);
    const Tensor done = negated(equal(found, static_cast<double>(newton::undecided)));
    outcome_.status = choose(both(left_, done), found, outcome_.status);
    outcome_.residual_norm = choose(left_, norm_, outcome_.residual_norm);
    outcome_.iterations = choose(left_, static_cast<double>(i), outcome_.iterations);
    if (settings_.keep_history) history_.push_back(choose(negated(left_), nan, norm_));
    left_ = both(left_, negated(done));
  }

  void keep_history() {
    for (Tensor& norms : history_) norms = shaped(norms, {points_, 1});
    const std::int64_t rest = settings_.miters - std::ssize(history_);
    if (rest > 0) history_.push_back(filled(DType::float64, {points_, rest}, nan, device_));
    outcome_.history = joined(history_, 1).row_major();
  }

  newton::System& system_;
  const newton::Settings& settings_;
  Groups& u_;
  std::int64_t points_;
  Device device_;
  DeviceOutcome outcome_;
  Groups residual_;
  Tensor norm_;
  Tensor left_, singular_, settled_;  // masks
  Vector<Tensor> history_;
};

}  // namespace

DeviceOutcome DeviceOutcome::none(std::int64_t points, Device device) {
  DeviceOutcome outcome;
  outcome.status = outcome.iterations = filled(DType::int32, {points}, NEML2_OK, device);
  outcome.residual_norm = filled(DType::float64, {points}, 0.0, device);
  outcome.suggested_cut = filled(DType::float64, {points}, 1.0, device);
  return outcome;
}

Tensor DeviceOutcome::failed() const {
  return less(filled(DType::int32, status.sizes(), NEML2_NON_FINITE, status.device()), status);
}

void DeviceOutcome::add(const DeviceOutcome& later) {
  newton::Report<OnDevice> all{status, iterations, residual_norm, suggested_cut};
  all.add({later.status, later.iterations, later.residual_norm, later.suggested_cut});
  status = all.status.values;
  iterations = all.iterations.values;
  residual_norm = all.residual_norm.values;
  suggested_cut = all.suggested_cut.values;
  history = later.history;
  any_failed |= later.any_failed;
}

DeviceOutcome solve_on_device(newton::System& system, Groups& u, const newton::Settings& settings) {
  return Iteration(system, u, settings).run();
}

Tensor select(const Tensor& rows, const Tensor& mask, bool wanted) {
  return choose(beside(wanted ? negated(mask) : mask, rows), nan, rows).row_major();
}

Groups select(const Groups& groups, const Tensor& mask, bool wanted) {
  Groups selected;
  for (const Tensor& group : groups) selected.push_back(select(group, mask, wanted));
  return selected;
}

}  // namespace neml2_capi::model
