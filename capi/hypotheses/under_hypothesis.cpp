#include "capi/hypotheses/under_hypothesis.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "capi/base/error.h"
#include "capi/evaluation/bounded.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/lanes.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/sums.h"
#include "capi/hypotheses/in_lanes.h"
#include "capi/hypotheses/products.h"
#include "capi/hypotheses/results_apart.h"
#include "capi/hypotheses/rounds.h"

namespace neml2_capi::model {
namespace {

void solve_all(FreeSolve& solve, const kernels::Engine* lanes) {
  Vector<std::size_t> open;
  if (lanes) {
    open = run_in_lanes(solve, *lanes);
  } else {
    for (std::int64_t i = 0; i < solve.range.points; ++i) {
      open.push_back(static_cast<std::size_t>(i));
      solve.add(solve.range.begin + i);
    }
  }
  Rounds(solve).run(std::move(open));
  if (solve.has_products()) Products(solve).run();
  solve.conclude();
}

// Tells whether results must not be written yet when the law is evaluated for the last time.
bool are_kept_apart(const Model& law, const Plan& plan, const Bindings& bindings) {
  if (plan.request().products() || may_fail_for_bounds(law, plan.options())) return true;
  const auto is_copied = [](bool copied) { return copied; };
  return has_bounds(law, plan.options()) && std::ranges::any_of(bindings.copies, is_copied);
}

// The boundary multiplies with derivatives of its inputs itself, unless lanes take them.
Request without_slopes(Request request) {
  request.slopes = false;
  return request;
}

}  // namespace

UnderHypothesis::UnderHypothesis(std::shared_ptr<const Routes> law, std::unique_ptr<const Reduction> reduction,
                                 bool on_device)
    : law_(std::move(law)), reduction_(std::move(reduction)) {
  const Model& model = law_->model();
  if (!on_device && !model.is_around_another()) lanes_ = engine_for(model, &reduction_->condensation());
}

const kernels::Engine* UnderHypothesis::lanes_for(const Plan& plan, const Bindings& bindings) const {
  if (!lanes_ || plan.options().kernels() == Options::Kernels::off) return nullptr;
  if (!are_whole(plan.model(), bindings)) return nullptr;
  return lanes_->reason(asked_of_lanes(plan.request(), *reduction_, law_->model())).empty() ? lanes_.get() : nullptr;
}

void UnderHypothesis::check(const Options& options, std::int64_t points) const {
  if (options.whole_batch())
    throw Error(NEML2_ERROR_UNSUPPORTED, "convergence",
                join("Under the hypothesis ", reduction_->hypothesis().name,
                     " each point converges on its own: set convergence = point."));
  Request request{Bindings()};
  request.points = points;
  const Plan plan(*law_, options, request);
}

// Lanes derive by whole tensors of the law: if one part of a tensor is a variable that inputs move with, so must be the
// other, if anything is derived by it; and it must be the law's. If parts of a tensor move with parts of it, it is said of
// each part how it moves with itself.
bool UnderHypothesis::are_whole(const Model& boundary, const Bindings& bindings) const {
  if (bindings.slopes.empty()) return true;
  const auto moves_with = [&](std::size_t input) {
    return std::ranges::any_of(bindings.slopes, [input](const Slope& slope) {
      return slope.array.data && slope.kind == Kind::input && slope.variable == input;
    });
  };
  const auto& all = boundary.derivatives(Kind::input).all();
  const auto is_derived_by = [&](std::size_t input) {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].input == input && bindings.blocks[i].data) return true;
    return false;
  };
  bool begins_alone = reduction_->free_before() >= 0;
  const auto& roles = reduction_->roles(Kind::input);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i].others < 0) continue;
    const auto others = static_cast<std::size_t>(roles[i].others);
    if (!tell_of_themselves(bindings, i, others)) return false;
    begins_alone = begins_alone && roles[i].others != reduction_->free_before();
    if (moves_with(i) != moves_with(others) && is_derived_by(moves_with(i) ? others : i)) return false;
  }
  return !begins_alone || !moves_with(static_cast<std::size_t>(reduction_->free_before()));
}

// Free strains, which are not known yet, are NaN, which is beyond no bound. A view leaves it to its law to look.
Vector<LeftOut> UnderHypothesis::beyond_as_given(const Plan& plan, const Bindings& bindings, const Range& range,
                                                 Vector<Exceeded>& exceeded) const {
  Vector<LeftOut> found;
  if (!may_fail_for_bounds(law_->model(), plan.options())) return found;
  const BoundsCheck check(law_->model(), plan.options());
  if (!check.is_needed()) return found;
  LawMemory memory;
  LawArrays arrays(*law_, *reduction_, bindings, range, memory);
  Vector<std::int64_t> points(static_cast<std::size_t>(range.points));
  std::iota(points.begin(), points.end(), range.begin);
  arrays.take(points);
  const std::size_t free = reduction_->hypothesis().free.size();
  const Vector<double> unknown(points.size() * free, NAN);
  arrays.give(Part::input, reduction_->strain(), free == 0 ? nullptr : &unknown);
  Vector<Exceeded> all;
  for (const BoundsCheck::Bad& bad : check.find(arrays.bindings(), {0, range.points}, all))
    found.push_back({range.begin + bad.point, bad.cut()});
  for (Exceeded& each : all) {
    if (!each.fails) continue;  // others are told of what is found
    each.point += range.begin;
    exceeded.push_back(each);
  }
  return found;
}

bool UnderHypothesis::tell_of_themselves(const Bindings& bindings, std::size_t one, std::size_t other) {
  bool move = false, one_by_itself = false, other_by_itself = false;
  for (const Slope& slope : bindings.slopes) {
    if (!slope.array.data || slope.kind != Kind::input) continue;
    const auto is_part = [&](std::size_t input) { return input == one || input == other; };
    move = move || (is_part(slope.input) && is_part(slope.variable));
    one_by_itself = one_by_itself || (slope.input == one && slope.variable == one);
    other_by_itself = other_by_itself || (slope.input == other && slope.variable == other);
  }
  return !move || (one_by_itself && other_by_itself);
}

bool UnderHypothesis::takes_slopes(const Request& request) const {
  return !request.jvps && !request.adjoints && !request.parameter_adjoints;
}

Route::ChunkSize UnderHypothesis::chunk_size(const Options& options, const Request& request) const {
  const Request of_law = without_slopes(request);
  return law_->choose(of_law, options).chunk_size(options, of_law);
}

std::int64_t UnderHypothesis::end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                                           std::int64_t size) const {
  return law_->choose(without_slopes(Request(bindings)), options).end_of_range(options, bindings, begin, size);
}

void UnderHypothesis::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                          Tally& tally) const {
  Vector<Exceeded> exceeded;
  if (const Vector<LeftOut> beyond = beyond_as_given(plan, bindings, range, exceeded); !beyond.empty()) {
    run_without(beyond, plan, bindings, range, tally);
    for (const Exceeded& each : exceeded) model::add(tally.exceeded, each);
    return;
  }
  if (!workspace.kept) workspace.kept = std::make_unique<LawMemory>();
  LawMemory& memory = static_cast<LawMemory&>(*workspace.kept);
  const auto solved = [&](const Bindings& arrays) {
    FreeSolve solve(plan, *law_, *reduction_, arrays, range, memory);
    solve_all(solve, lanes_for(plan, arrays));
    tally.add(std::move(solve.tally));
    return std::move(solve.points);
  };
  const auto run = [&](const Bindings& arrays) {
    if (!are_kept_apart(law_->model(), plan, arrays)) {
      solved(arrays);
      return;
    }
    Bindings own = arrays;
    const ResultsApart apart(plan.model(), arrays, range);
    apart.replace(own);
    for (const FreeStrain& each : solved(own))
      if (each.status <= NEML2_NON_FINITE || arrays.mark_failed) apart.write(each.point);
  };
  if (!plan.request().sums) return run(bindings);
  Bindings own = bindings;
  const Sums sums(plan.model(), bindings, range.begin, range.points);
  sums.replace(own);
  run(own);
  if (!begin_sums(plan, bindings, range)) return;
  sums.write();
  end_sums(plan, range);
}

}  // namespace neml2_capi::model
