#include "capi/hypotheses/under_hypothesis.h"

#include <utility>

#include "capi/base/error.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/lanes.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/sums.h"
#include "capi/hypotheses/in_lanes.h"
#include "capi/hypotheses/products.h"
#include "capi/hypotheses/rounds.h"

namespace neml2_capi::model {
namespace {

template <class Scalar>
Tally evaluate(FreeSolve solve, const kernels::Engine* lanes) {
  Vector<std::size_t> open;
  if (lanes) {
    open = run_in_lanes(solve, *lanes);
  } else {
    for (std::int64_t i = 0; i < solve.range.points; ++i) {
      open.push_back(static_cast<std::size_t>(i));
      solve.add(solve.range.begin + i);
    }
  }
  Rounds<Scalar>(solve).run(std::move(open));
  if (solve.has_products()) Products<Scalar>(solve).run();
  solve.conclude();
  return std::move(solve.tally);
}

}  // namespace

UnderHypothesis::UnderHypothesis(std::shared_ptr<const Routes> law, std::unique_ptr<const Reduction> reduction)
    : law_(std::move(law)), reduction_(std::move(reduction)) {
  const Model& model = law_->model();
  if (!model.is_around_another()) lanes_ = engine_for(model, &reduction_->condensation());
}

const kernels::Engine* UnderHypothesis::lanes_for(const Plan& plan) const {
  if (!lanes_ || plan.options().kernels() == Options::Kernels::off) return nullptr;
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

Route::ChunkSize UnderHypothesis::chunk_size(const Options& options, const Request& request) const {
  return law_->choose(request, options).chunk_size(options, request);
}

std::int64_t UnderHypothesis::end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                                           std::int64_t size) const {
  return law_->choose(Request(bindings), options).end_of_range(options, bindings, begin, size);
}

void UnderHypothesis::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                          Tally& tally) const {
  if (!workspace.kept) workspace.kept = std::make_unique<LawMemory>();
  LawMemory& memory = static_cast<LawMemory&>(*workspace.kept);
  const auto run = [&](const Bindings& arrays) {
    with_scalar(plan.model().dtype(), [&]<class Scalar>(Scalar*) {
      tally.add(evaluate<Scalar>({plan, *law_, *reduction_, arrays, range, memory}, lanes_for(plan)));
    });
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
