#include "capi/evaluation/rescue.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/interrupt.h"
#include "capi/base/log.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/gathered.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/results.h"
#include "capi/evaluation/sums.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

bool has_failed(std::int32_t status) { return status > NEML2_NON_FINITE; }

// An input and its value a step before, by position.
struct Moving {
  std::size_t now, before;
};

// Inputs that move. An output's name is the guess of an unknown, which does not.
std::vector<Moving> moving_inputs(const Model& model) {
  std::vector<Moving> all;
  for (const Model::History& history : model.histories()) {
    if (history.age != 1 || history.current < 0 || history.output >= 0) continue;
    const Moving pair = {static_cast<std::size_t>(history.current), static_cast<std::size_t>(history.input)};
    const Variable &now = model.variables(Kind::input)[pair.now], &before = model.variables(Kind::input)[pair.before];
    if (now.dtype == model.dtype() && before.dtype == model.dtype() && now.point_shape == before.point_shape)
      all.push_back(pair);
  }
  return all;
}

// The points of a range that failed, on their way to the equations of the step.
class Rescuer {
 public:
  // The bindings have an array for the status.
  Rescuer(const Plan& plan, const Bindings& bindings, const Range& range)
      : plan_(plan),
        model_(plan.model()),
        bindings_(bindings),
        range_(range),
        moving_(moving_inputs(model_)),
        most_(moving_.empty() ? 1 : plan.options().rescue()) {
    for (std::int64_t p = range.begin; p < range.begin + range.points; ++p)
      if (has_failed(number(NEML2_REPORT_STATUS, p))) points_.push_back({p});
    for (const Variable& unknown : model_.variables(Kind::unknown)) {
      solutions_.push_back(Tensor::empty(unknown.dtype, Dims{std::ssize(points_)}.then(unknown.point_shape)));
      fill_nan(solutions_.back().data_as<char>(), unknown.dtype, solutions_.back().numel());
    }
  }

  // Returns what became of these points.
  Tally run() {
    for (Rows between, last; divide(between, last);) {
      interrupt::check();
      solve(between, Gathered::Wanted::status);
      solve(last, Gathered::Wanted::results);
    }
    for (const Point& point : points_) {
      add(NEML2_REPORT_ITERATIONS, point.number, point.iterations);
      add(NEML2_REPORT_RESCUE_SOLVES, point.number, point.solves);
    }
    give_up();
    tell();
    return std::move(tally_);
  }

 private:
  using Rows = Vector<std::size_t>;  // of points_

  struct Point {
    std::int64_t number = 0;
    double at = 0.0, step = 1.0;  // the part of the step that is solved, and what is added next
    std::int32_t solves = 0, iterations = 0;

    double next() const { return std::min(at + step, 1.0); }
  };

  std::int32_t number(int report, std::int64_t point) const {
    return *reinterpret_cast<const std::int32_t*>(model::point(bindings_.report[report], point, 4));
  }
  void add(int report, std::int64_t point, std::int32_t count) const {
    if (bindings_.report[report].data)
      *reinterpret_cast<std::int32_t*>(model::point(bindings_.report[report], point, 4)) += count;
  }

  bool is_open(const Point& point) const { return point.at < 1.0 && point.step >= least_step && point.solves < most_; }

  // Finds the points that go on, and of these the ones whose next equations are the step's. False if there are none.
  bool divide(Rows& between, Rows& last) const {
    between.clear();
    last.clear();
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (is_open(points_[i])) (points_[i].next() < 1.0 ? between : last).push_back(i);
    return !between.empty() || !last.empty();
  }

  Vector<std::int64_t> numbers_of(const Rows& rows) const {
    Vector<std::int64_t> numbers;
    for (const std::size_t row : rows) numbers.push_back(points_[row].number);
    // Packages of a fixed batch take whole ones.
    const std::int64_t batch = std::max<std::int64_t>(model_.baked_batch(), 1);
    while (std::ssize(numbers) % batch != 0) numbers.push_back(numbers.back());
    return numbers;
  }

  // Solves the next equations of some points, from the solutions that they have. What fails is tried with half the step.
  void solve(const Rows& rows, Gathered::Wanted wanted) {
    if (rows.empty()) return;
    Gathered some(model_, bindings_, numbers_of(rows), wanted, plan_.options().miters());
    if (wanted == Gathered::Wanted::status)
      for (const Moving& input : moving_) move(input, rows, some.bindings);
    const Groups found = begin_from_solutions(rows, some.bindings);
    Tally tally = evaluate(plan_.options().in_rescue(), some.bindings);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Point& point = points_[rows[i]];
      ++point.solves;
      point.iterations += some.iterations(i);
      if (has_failed(some.status(i))) {
        point.step /= 2;
        continue;
      }
      point.at = point.next();
      point.step *= 2;
      copy_row(found, static_cast<std::int64_t>(i), solutions_, static_cast<std::int64_t>(rows[i]));
      if (wanted == Gathered::Wanted::status) continue;
      some.write(i);
      tally_.add_one(some.status(i), point.number);
    }
    if (wanted == Gathered::Wanted::results) note_non_finite(tally, some);
  }

  void move(const Moving& input, const Rows& rows, const Bindings& bindings) const {
    const Variable& variable = model_.variables(Kind::input)[input.now];
    const std::int64_t size = variable.point_shape.product();
    with_scalar(variable.dtype, [&]<class Scalar>(Scalar*) {
      auto* now = reinterpret_cast<Scalar*>(bindings.inputs[input.now].data);
      const auto* before = reinterpret_cast<const Scalar*>(bindings.inputs[input.before].data);
      for (const std::size_t row : rows) {
        const auto part = static_cast<Scalar>(points_[row].next());
        for (std::int64_t k = 0; k < size; ++k, ++now, ++before) *now = *before + part * (*now - *before);
      }
    });
  }

  // Binds the guesses, and room for the unknowns, which is returned.
  Groups begin_from_solutions(const Rows& rows, Bindings& bindings) {
    Vector<std::int64_t> all(static_cast<std::size_t>(bindings.points));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(rows[std::min(i, rows.size() - 1)]);
    guesses_ = select_rows(solutions_, all);
    Groups found;
    for (const Tensor& guess : guesses_) {
      found.push_back(Tensor::empty(guess.dtype(), guess.sizes()));
      bindings.guesses.push_back({guess.data_as<char>(), row_size(guess)});
      bindings.iterates.push_back({found.back().data_as<char>(), row_size(guess)});
    }
    return found;
  }

  Tally evaluate(const Options& options, const Bindings& bindings) const {
    const Borrowed workspace(plan_.routes());
    return Plan(plan_.routes(), options, Request(bindings)).evaluate(bindings, *workspace);
  }

  void note_non_finite(const Tally& tally, const Gathered& some) {
    NonFinite first = tally.non_finite;
    if (first.point < 0) return;
    first.point = some.point(static_cast<std::size_t>(first.point));
    tally_.note(first);
  }

  // Evaluates the points that no rescue solved once more, as without one: their reports are of that evaluation.
  void give_up() {
    Rows rows;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (points_[i].at < 1.0) rows.push_back(i);
    given_up_ = std::ssize(rows);
    if (rows.empty()) return;
    Gathered failed(model_, bindings_, numbers_of(rows), Gathered::Wanted::status, plan_.options().miters());
    Vector<Tensor> unknowns(solutions_.size());
    if (bindings_.unknowns) failed.bindings.unknowns = &unknowns;
    Tally tally = evaluate(plan_.options().without_rescue(), failed.bindings);
    if (tally.failed.point >= 0) tally.failed.point = failed.point(static_cast<std::size_t>(tally.failed.point));
    tally_.note(tally.failed);
    tally_.rescue_failed = true;
    if (!tally.reason.empty())
      tally_.note(tally.reason.c_str(), failed.point(static_cast<std::size_t>(tally.reason_at)), tally.cause);
    for (std::size_t i = 0; i < rows.size(); ++i) tally_.add_one(failed.status(i), failed.point(i));
    keep_iterates(unknowns, failed, rows.size());
    if (bindings_.mark_failed) mark_failed(rows);
  }

  void keep_iterates(const Vector<Tensor>& unknowns, const Gathered& failed, std::size_t count) const {
    const auto alone = range_.turns ? range_.turns->alone() : std::unique_lock<locks::FreedMutex>();
    for (std::size_t k = 0; k < unknowns.size(); ++k) {
      if (!unknowns[k].data()) continue;
      Groups all = {iterates_of_all(bindings_, k, model_.variables(Kind::unknown)[k])};
      for (std::size_t i = 0; i < count; ++i)
        copy_row({unknowns[k]}, static_cast<std::int64_t>(i), all, failed.point(i));
    }
  }

  void mark_failed(const Rows& rows) const {
    for_each_result(model_, bindings_, [&](const Points& array, const Variable& variable, Part, std::size_t) {
      for (const std::size_t row : rows)
        if (!is_one_value(array))
          fill_nan(model::point(array, points_[row].number, itemsize(variable.dtype)), variable.dtype,
                   variable.point_shape.product());
    });
  }

  void tell() const {
    const auto most = std::ranges::max_element(points_, {}, &Point::solves);
    log::write(log::Channel::newton, log::Level::info, model_.metadata().leaf.string(), ": rescued ",
               std::ssize(points_) - given_up_, " of ", points_.size(), " points that had not converged (the first is ",
               points_.front().number, "), in at most ", most->solves, " solves");
  }

  // Parts of a step below which a homotopy ends.
  static constexpr double least_step = 1.0 / 1024;

  const Plan& plan_;
  const Model& model_;
  const Bindings& bindings_;
  const Range& range_;
  const std::vector<Moving> moving_;
  const std::int64_t most_;  // solves
  Vector<Point> points_;
  Groups solutions_;  // by unknown: the last that was found; NaN before the first
  Groups guesses_;
  std::int64_t given_up_ = 0;
  Tally tally_;
};

}  // namespace

void Rescue::check(const Options& options, std::int64_t points) const {
  if (options.whole_batch())
    throw Error(NEML2_ERROR_UNSUPPORTED, "rescue",
                "The option rescue is for single points, and with convergence = batch one that fails fails all. Set "
                "convergence = point, or rescue = 0.");
  route_.check(options, points);
}

void Rescue::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                 Tally& tally) const {
  const bool has_sums = plan.request().sums;
  Tally found;
  const auto rescue = [&](const Bindings& arrays) {
    if (found.count[NEML2_NOT_CONVERGED] + found.count[NEML2_SINGULAR] == 0) return;
    Rescuer rescuer(plan, arrays, range);
    found.forget_failed();
    found.add(rescuer.run());
  };
  if (bindings.report[NEML2_REPORT_STATUS].data && !bindings.mark_failed && !bindings.unknowns && !has_sums) {
    route_.run(plan, bindings, range, workspace, found);
    rescue(bindings);
    return tally.add(found);
  }
  // Arrays of points that failed are left as they are: inputs may lie there.
  Bindings own = bindings;
  PointRows own_status(range.begin, range.points);
  if (!own.report[NEML2_REPORT_STATUS].data)
    own.report[NEML2_REPORT_STATUS] = own_status.add({"", "", DType::int32, {}, 0}, false);
  const Sums sums(plan.model(), bindings, range.begin, range.points);
  sums.replace(own);
  own.mark_failed = false;
  own.unknowns = nullptr;
  std::optional<Plan> without_sums;
  if (has_sums) without_sums.emplace(plan.routes(), plan.options(), Request(own));
  route_.run(has_sums ? *without_sums : plan, own, range, workspace, found);
  own.mark_failed = bindings.mark_failed;
  own.unknowns = bindings.unknowns;
  rescue(own);
  tally.add(found);
  if (!begin_sums(plan, bindings, range)) return;
  sums.write();
  end_sums(plan, range);
}

}  // namespace neml2_capi::model
