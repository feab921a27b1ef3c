#include "capi/newton/newton.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "capi/base/interrupt.h"
#include "capi/base/log.h"
#include "capi/newton/messages.h"
#include "capi/newton/rules.h"

namespace neml2_capi::newton {
namespace {

using log::Channel;
using log::Level;
using PointRules = Rules<Scalars>;

// Indexes a vector by a row.
template <class T>
auto& at(T& values, std::int64_t row) {
  return values[static_cast<std::size_t>(row)];
}

// Points that are still iterated. A row is a position among them; `point` says which point of the batch it is.
class Iteration {
 public:
  Iteration(System& system, Groups& u, const Settings& settings, const Owner& owner)
      : system_(system), settings_(settings), owner_(owner), solution_(u) {
    reports_.begin(u.front().sizes()[0], NEML2_NOT_CONVERGED, settings);
    for (Tensor& group : u) u_.push_back(group.copy());
    point_.resize(static_cast<std::size_t>(u.front().sizes()[0]));
    std::iota(point_.begin(), point_.end(), 0);
    done_.assign(point_.size(), 0);
    left_ = rows();
  }

  Reports run(const Vector<double>& reference) {
    evaluate();
    initial_norm_ = norm_;
    for (std::size_t p = 0; p < reference.size(); ++p) initial_norm_[p] = PointRules::initial(norm_[p], reference[p]);
    reports_.initial_norm = initial_norm_;
    record(0);
    for (std::int64_t i = 1; i < settings_.miters && !finish(); ++i) {
      interrupt::check();
      make_step();
      if (fused()) retire_expected(i);
      if (!line_search() && !finish()) evaluate();
      record(i);
    }
    if (!finish()) fail_the_rest();
    if (log::on(Channel::newton, Level::info)) tell_outcome();
    return std::move(reports_);
  }

 private:
  bool line_search() const { return settings_.ls_max_iters > 1; }

  // Tells whether every iterate is accepted as it is: the residual then comes with the operator for the next step.
  bool fused() const { return !line_search() && !settings_.whole_batch; }

  void evaluate() {
    previous_norm_.swap(norm_);
    residual_ = fused() ? system_.linearize(u_) : system_.residual(u_);
    norm(residual_, norm_);
  }

  void make_step() {
    if (!fused()) system_.linearize(u_);
    const Groups du = system_.step(singular_);
    const Groups before = gated() ? u_ : Groups();
    if (line_search())
      search_along(du, Vector<double>(point_.size(), 1.0));
    else
      u_ = plus(u_, du);
    if (gated()) measure_step(before);
  }

  bool gated() const { return std::isfinite(settings_.step_tol); }

  // Finds the steps that were small enough for the relative criterion to count.
  void measure_step(const Groups& before) {
    Vector<double> made, size;
    norm(plus(u_, before, Vector<double>(point_.size(), -1.0)), made);
    norm(u_, size);
    settled_.resize(point_.size());
    for (std::int64_t r = 0; r < rows(); ++r)
      at(settled_, r) = PointRules::has_settled(at(made, r), at(size, r), settings_);
  }

  // Cuts the step of each point until its residual has decreased enough. The last trial is taken in any case.
  void search_along(const Groups& du, Vector<double> alpha) {
    const Vector<double> norm0 = norm_;
    Vector<double> slope;
    dot(residual_, du, slope);
    for (std::int64_t trial = 1; trial < settings_.ls_max_iters; ++trial) {
      Groups u = plus(u_, du, alpha);
      residual_ = system_.residual(u);
      norm(residual_, norm_);
      bool all = true;
      for (std::int64_t r = 0; r < rows(); ++r) {
        if (at(done_, r) ||
            PointRules::has_decreased(at(norm_, r), at(norm0, r), at(alpha, r), at(slope, r), settings_))
          continue;
        all = false;
        at(alpha, r) /= settings_.ls_cutback;
      }
      if (all || trial + 1 == settings_.ls_max_iters) {
        u_ = std::move(u);
        least_step_ = *std::min_element(alpha.begin(), alpha.end());
        return;
      }
    }
  }

  // Tells whether a point should have converged: near a solution each |r| is about a constant times the square of the
  // one before. Its residual alone takes a part of the time of the operator.
  bool expected(std::int64_t row) const {
    const double ratio = at(norm_, row) / at(previous_norm_, row);
    return ratio < 1.0 &&
           ratio * ratio * at(norm_, row) < std::max(settings_.atol, settings_.rtol * at(initial_norm_, row));
  }

  void retire_expected(std::int64_t i) {
    if (previous_norm_.empty() || !system_.can_shrink()) return;
    Vector<std::int64_t> some;
    for (std::int64_t r = 0; r < rows(); ++r)
      if (expected(r)) some.push_back(r);
    if (some.empty()) return;
    Vector<double> found;
    const Groups residual = system_.quick_residual(u_, some);
    if (residual.empty()) return;
    norm(residual, found);
    for (std::size_t k = 0; k < some.size(); ++k) judge(some[k], i, found[k]);
    residual_.clear();
    shrink();
  }

  // Notes where each point stands after iteration `i`, and retires those that are done.
  void record(std::int64_t i) {
    for (std::int64_t r = 0; r < rows(); ++r)
      if (!at(done_, r)) judge(r, i, at(norm_, r));
    if (settings_.whole_batch) settle_the_batch();
    if (log::on(Channel::newton, Level::debug)) tell_iteration(i);
    greatest_norm_ = 0.0;
    if (!settings_.whole_batch && system_.can_shrink()) shrink();
  }

  void judge(std::int64_t r, std::int64_t i, double now) {
    const bool stepped = i > 0;
    const std::int64_t p = at(point_, r);
    if (settings_.keep_history) at(reports_.history, p * settings_.miters + i) = now;
    at(reports_.residual_norm, p) = now;
    at(reports_.iterations, p) = static_cast<std::int32_t>(i);
    if (!(now <= greatest_norm_) && !std::isnan(greatest_norm_)) greatest_norm_ = now;
    const bool settled = !gated() || (stepped && at(settled_, r));
    const bool singular = stepped && at(singular_, r) != 0;
    const std::int32_t status = PointRules::verdict(now, at(initial_norm_, r), singular, settled, settings_);
    if (status > NEML2_OK || (status == NEML2_OK && !settings_.whole_batch))
      retire(r, status);
    else if (settings_.whole_batch)
      at(reports_.status, p) = status == NEML2_OK ? NEML2_OK : NEML2_NOT_CONVERGED;
  }

  void tell_iteration(std::int64_t i) const {
    const auto step = line_search() && i > 0 ? std::optional(least_step_) : std::nullopt;
    newton::tell_iteration(owner_, std::ssize(reports_.status), i, greatest_norm_, step, left_);
  }

  void tell_outcome() const {
    const auto& status = reports_.status;
    End end;
    end.converged = std::count(status.begin(), status.end(), NEML2_OK);
    end.iterations = *std::max_element(reports_.iterations.begin(), reports_.iterations.end());
    const auto failed = std::find_if(status.begin(), status.end(), [](std::int32_t s) { return s != NEML2_OK; });
    if (failed != status.end()) {
      end.failed = failed - status.begin();
      end.singular = *failed == NEML2_SINGULAR;
      end.norm = at(reports_.residual_norm, end.failed);
    }
    tell_end(owner_, std::ssize(status), end);
  }

  void retire(std::int64_t row, std::int32_t status) {
    at(done_, row) = 1;
    --left_;
    if (status == NEML2_OK)
      at(reports_.status, at(point_, row)) = status;
    else
      reports_.fail(static_cast<std::size_t>(at(point_, row)), status);
    copy_row(u_, row, solution_, at(point_, row));
  }

  // Fails all for one failure, and retires all once all have converged.
  void settle_the_batch() {
    const bool failed = left_ < rows();
    const bool converged =
        std::all_of(reports_.status.begin(), reports_.status.end(), [](std::int32_t s) { return s == NEML2_OK; });
    if (failed) fail_the_rest();
    if (converged)
      for (std::int64_t r = 0; r < rows(); ++r) retire(r, NEML2_OK);
  }

  void shrink() {
    if (left_ == rows()) return;
    Vector<std::int64_t> left;
    left.reserve(static_cast<std::size_t>(left_));
    for (std::int64_t r = 0; r < rows(); ++r)
      if (!at(done_, r)) left.push_back(r);
    keep_rows(point_, left);
    for (auto* values : {&norm_, &previous_norm_, &initial_norm_}) keep_rows(*values, left);
    keep_rows(singular_, left);
    keep_rows(settled_, left);
    done_.assign(left.size(), 0);
    if (left.empty()) return;
    u_ = select_rows(u_, left);
    residual_ = select_rows(residual_, left);
    system_.keep(left);
  }

  bool finish() const { return left_ == 0; }

  void fail_the_rest() {
    for (std::int64_t r = 0; r < rows(); ++r)
      if (!at(done_, r)) retire(r, NEML2_NOT_CONVERGED);
  }

  std::int64_t rows() const { return static_cast<std::int64_t>(point_.size()); }

  System& system_;
  const Settings& settings_;
  const Owner& owner_;
  Groups& solution_;
  Reports reports_;

  std::int64_t left_ = 0;       // rows that are not done
  double least_step_ = 1.0;     // that the last line search took
  double greatest_norm_ = 0.0;  // of this iteration; NaN if one is
  Vector<std::int64_t> point_;
  Vector<char> done_, settled_;
  Groups u_, residual_;
  Vector<double> norm_, previous_norm_, initial_norm_;
  Vector<std::int32_t> singular_;
};

}  // namespace

void Reports::begin(std::int64_t points, std::int32_t with_status, const Settings& settings) {
  const auto size = static_cast<std::size_t>(points);
  status.assign(size, with_status);
  iterations.assign(size, 0);
  residual_norm.assign(size, 0.0);
  suggested_cut.assign(size, 1.0);
  history.assign(settings.keep_history ? size * static_cast<std::size_t>(settings.miters) : 0,
                 std::numeric_limits<double>::quiet_NaN());
}

void Reports::add(Reports later) {
  for (std::size_t p = 0; p < status.size(); ++p) {
    Report<Scalars> report{status[p], iterations[p], residual_norm[p], suggested_cut[p]};
    report.add({later.status[p], later.iterations[p], later.residual_norm[p], later.suggested_cut[p]});
    status[p] = report.status;
    iterations[p] = report.iterations;
    residual_norm[p] = report.residual_norm;
    suggested_cut[p] = report.suggested_cut;
  }
  history = std::move(later.history);
}

void Reports::fail(std::size_t point, std::int32_t with_status) {
  status[point] = with_status;
  suggested_cut[point] = PointRules::suggested_cut(initial_norm[point], residual_norm[point]);
}

std::string Owner::str(std::int64_t points) const {
  return join(name, ", ", points == 1 ? "point " : join(points, " points from "), point(0), points == 1 ? "" : " on");
}

Reports solve(System& system, Groups& u, const Settings& settings, const Owner& owner,
              const Vector<double>& reference) {
  return Iteration(system, u, settings, owner).run(reference);
}

}  // namespace neml2_capi::newton
