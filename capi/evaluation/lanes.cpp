// The evaluation of a model on its kernels: the points in ranges, on one thread or several.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
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
  Ranges(const kernels::Engine& lanes, const kernels::Request& request, kernels::Asked asked, std::int64_t points,
         std::int64_t size)
      : lanes_(lanes), request_(request), asked_(asked), points_(points), size_(size) {}

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
      lanes_.run(request_, asked_, begin, std::min(begin + size_, points_), counts);
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
  const kernels::Asked asked_;
  const std::int64_t points_;
  std::int64_t size_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex mutex_;  // guards what follows
  Tally tally_;
  std::exception_ptr failure_;
};

kernels::Asked asked_of(const Model& model, const Evaluation& evaluation) {
  kernels::Asked asked;
  asked.products =
      any_bound(evaluation.jvps) || any_bound(evaluation.adjoints) || any_bound(evaluation.parameter_adjoints);
  asked.by_parameters = any_bound(evaluation.parameter_blocks) || any_bound(evaluation.parameter_adjoints);
  // What a parameter does to one segment goes on through the values of the next.
  asked.by_values = any_bound(evaluation.blocks) || any_bound(evaluation.jvps) || any_bound(evaluation.adjoints) ||
                    (asked.by_parameters && model.metadata().segments.size() > 1);
  return asked;
}

std::string reason_against(const kernels::Engine* lanes, kernels::Asked asked, const Options& options) {
  if (!lanes) return "The model has no kernels that it could run on. Make them: neml2-capi compile INPUT.i";
  if (options.whole_batch()) return "A batch that converges as a whole does not run in lanes. Set convergence = point.";
  return lanes->reason(asked);
}

// Adjoints of one value for all points are sums of a row for each.
class Sums {
 public:
  Sums(const std::vector<Points>& wanted, const std::vector<Variable>& variables, std::int64_t points)
      : wanted_(wanted), variables_(variables), rows_(wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!is_one_value(wanted[i])) continue;
      made_.push_back(Tensor::zeros(variables[i].dtype, Dims{points}.then(variables[i].point_shape)));
      rows_[i] = {made_.back().data_as<char>(), variables[i].point_shape.product()};
    }
  }
  const std::vector<Points>& rows() const { return rows_; }

  // In the order of the points. One that failed is there as zero, or NaN.
  void write(std::int64_t points) const {
    if (made_.empty()) return;
    const Vector<std::int32_t> good(static_cast<std::size_t>(points), NEML2_OK);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      if (!is_one_value(wanted_[i])) continue;
      const auto bytes = static_cast<std::size_t>(variables_[i].point_shape.product() * itemsize(variables_[i].dtype));
      std::memset(wanted_[i].data, 0, bytes);
      accumulate(gather(rows_[i], variables_[i], 0, points, false), variables_[i], wanted_[i], good, false);
    }
  }

 private:
  const std::vector<Points>& wanted_;
  const std::vector<Variable>& variables_;
  std::vector<Points> rows_;
  Vector<Tensor> made_;
};

}  // namespace

bool Model::runs_in_lanes(const Evaluation& evaluation, const Options& options) const {
  const bool required = options.kernels() == Options::Kernels::required;
  if ((!lanes_ && !required) || options.kernels() == Options::Kernels::off) return false;
  const std::string reason = reason_against(lanes_.get(), asked_of(*this, evaluation), options);
  if (reason.empty() || !required) return reason.empty();
  throw Error(NEML2_ERROR_UNSUPPORTED, "kernels", join("The option kernels = required cannot be met. ", reason));
}

Tally Model::evaluate_in_lanes(const Evaluation& evaluation, const Options& options) const {
  const std::int64_t points = evaluation.points;
  Vector<Tensor> iterates;
  std::vector<Points> iterate_arrays;
  if (evaluation.unknowns)
    for (const Variable& unknown : variables(Kind::unknown)) {
      iterates.push_back(Tensor::empty(unknown.dtype, Dims{points}.then(unknown.point_shape)));
      fill_nan(iterates.back().data_as<char>(), unknown.dtype, iterates.back().numel());
      iterate_arrays.push_back({iterates.back().data_as<char>(), unknown.point_shape.product()});
    }
  const Sums adjoints(evaluation.adjoints, variables(Kind::input), points);
  const Sums parameter_adjoints(evaluation.parameter_adjoints, variables(Kind::parameter), points);
  const kernels::Request request = {.inputs = evaluation.inputs,
                                    .parameters = evaluation.parameters,
                                    .outputs = evaluation.outputs,
                                    .iterates = iterate_arrays,
                                    .blocks = evaluation.blocks,
                                    .parameter_blocks = evaluation.parameter_blocks,
                                    .tangents = evaluation.tangents,
                                    .jvps = evaluation.jvps,
                                    .cotangents = evaluation.cotangents,
                                    .adjoints = adjoints.rows(),
                                    .parameter_adjoints = parameter_adjoints.rows(),
                                    .report = evaluation.report,
                                    .rules = options.newton(),
                                    .mark_failed = evaluation.mark_failed,
                                    .input_first = evaluation.input_first};
  constexpr std::int64_t range = 256;
  Ranges ranges(*lanes_, request, asked_of(*this, evaluation), points, options.chunk() ? options.chunk() : range);
  const Tally tally = ranges.run(threads_for(points, options));
  adjoints.write(points);
  parameter_adjoints.write(points);
  if (tally.worst() > NEML2_NON_FINITE)
    for (std::size_t i = 0; i < iterates.size(); ++i) evaluation.unknowns->at(i) = iterates[i];
  return tally;
}

}  // namespace neml2_capi::model
