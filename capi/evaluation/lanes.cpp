// The evaluation of a model on its kernels: the points in ranges, on one thread or several.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

#include "capi/base/error.h"
#include "capi/evaluation/work.h"
#include "capi/kernels/engine.h"
#include "capi/model/model.h"
#include "capi/threads/pool.h"

namespace neml2_capi::model {
namespace {

// Ranges of points that threads take one after another.
class Ranges final : public threads::Job {
 public:
  Ranges(const kernels::Engine& lanes, const kernels::Request& request, bool derivatives, std::int64_t points,
         std::int64_t size)
      : lanes_(lanes), request_(request), derivatives_(derivatives), points_(points), size_(size) {}

  Tally run(int threads) {
    constexpr double worth_waking = 100e-6;  // seconds
    if (threads == 1) size_ = points_;
    const Stopwatch watch;
    take();
    const std::int64_t left = points_ - std::min(next_.load(), points_);
    const double expected = watch.seconds() / static_cast<double>(size_) * static_cast<double>(left);
    if (left == 0 || expected < worth_waking)
      work();
    else
      threads::run(*this, static_cast<int>(std::min<std::int64_t>(threads, (left + size_ - 1) / size_)) - 1);
    if (failure_) std::rethrow_exception(failure_);
    return tally_;
  }

  void work() override {
    while (take()) {
    }
  }

 private:
  bool take() {
    const std::int64_t begin = next_.fetch_add(size_);
    if (begin >= points_) return false;
    Tally tally;
    std::exception_ptr failure;
    try {
      kernels::Counts counts;
      lanes_.run(request_, derivatives_, begin, std::min(begin + size_, points_), counts);
      std::copy_n(counts.count, 4, tally.count);
      std::copy_n(counts.first, 4, tally.first);
    } catch (...) {  // no memory for a workspace
      failure = std::current_exception();
      next_ = points_;
    }
    const std::lock_guard lock(mutex_);
    tally_.add(tally);
    if (failure) failure_ = failure;
    return !failure;
  }

  const kernels::Engine& lanes_;
  const kernels::Request& request_;
  const bool derivatives_;
  const std::int64_t points_;
  std::int64_t size_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex mutex_;  // guards what follows
  Tally tally_;
  std::exception_ptr failure_;
};

std::string reason_against(const kernels::Engine* lanes, const Evaluation& evaluation, const Options& options) {
  if (!lanes) return "The model has no kernels that it could run on. Make them: neml2-capi compile INPUT.i";
  if (options.whole_batch()) return "A batch that converges as a whole does not run in lanes. Set convergence = point.";
  for (const auto* arrays :
       {&evaluation.parameter_blocks, &evaluation.jvps, &evaluation.adjoints, &evaluation.parameter_adjoints})
    if (any_bound(*arrays))
      return "Of derivatives, kernels give the blocks with respect to inputs only. Set kernels = auto.";
  return lanes->reason(any_bound(evaluation.blocks));
}

}  // namespace

bool Model::runs_in_lanes(const Evaluation& evaluation, const Options& options) const {
  const bool required = options.kernels() == Options::Kernels::required;
  if ((!lanes_ && !required) || options.kernels() == Options::Kernels::off) return false;
  const std::string reason = reason_against(lanes_.get(), evaluation, options);
  if (reason.empty() || !required) return reason.empty();
  throw Error(NEML2_ERROR_UNSUPPORTED, "kernels", join("The option kernels = required cannot be met. ", reason));
}

Tally Model::evaluate_in_lanes(const Evaluation& evaluation, const Options& options) const {
  Vector<Tensor> iterates;
  std::vector<Points> iterate_arrays;
  if (evaluation.unknowns)
    for (const Variable& unknown : variables(Kind::unknown)) {
      iterates.push_back(Tensor::empty(unknown.dtype, Dims{evaluation.points}.then(unknown.point_shape)));
      fill_nan(iterates.back().data_as<char>(), unknown.dtype, iterates.back().numel());
      iterate_arrays.push_back({iterates.back().data_as<char>(), unknown.point_shape.product()});
    }
  const kernels::Request request = {evaluation.inputs, evaluation.parameters,  evaluation.outputs,
                                    iterate_arrays,    evaluation.blocks,      evaluation.report,
                                    options.newton(),  evaluation.mark_failed, evaluation.input_first};
  constexpr std::int64_t range = 256;
  Ranges ranges(*lanes_, request, any_bound(evaluation.blocks), evaluation.points,
                options.chunk() ? options.chunk() : range);
  const Tally tally = ranges.run(threads_for(evaluation.points, options));
  if (tally.worst() > NEML2_NON_FINITE)
    for (std::size_t i = 0; i < iterates.size(); ++i) evaluation.unknowns->at(i) = iterates[i];
  return tally;
}

}  // namespace neml2_capi::model
