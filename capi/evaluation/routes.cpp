#include "capi/evaluation/routes.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "capi/base/error.h"
#include "capi/evaluation/lanes.h"
#include "capi/evaluation/one_package.h"
#include "capi/evaluation/through_segments.h"
#include "capi/graph/backend.h"

namespace neml2_capi::model {

Request::Request(const Bindings& bindings)
    : points(bindings.points),
      blocks(any_bound(bindings.blocks)),
      parameter_blocks(any_bound(bindings.parameter_blocks)),
      jvps(any_bound(bindings.jvps)),
      adjoints(any_bound(bindings.adjoints)),
      parameter_adjoints(any_bound(bindings.parameter_adjoints)),
      slopes(!bindings.slopes.empty()),
      sums((adjoints && std::ranges::any_of(bindings.adjoints, is_one_value)) ||
           (parameter_adjoints && std::ranges::any_of(bindings.parameter_adjoints, is_one_value))),
      history(bindings.report[NEML2_REPORT_RESIDUAL_HISTORY].data != nullptr) {}

std::int64_t Route::end_of_range(const Options&, const Bindings& bindings, std::int64_t begin,
                                 std::int64_t size) const {
  return begin + std::min(size, bindings.points - begin);
}

Routes::Routes(std::shared_ptr<const Model> model) : model_(std::move(model)) {
  auto segments = std::make_shared<const ThroughSegments>(*model_);
  routes_.push_back(std::make_shared<const Lanes>(*model_));
  if constexpr (graph::has_backends)  // else there are no packages
    if (OnePackage::evaluates(*model_)) routes_.push_back(std::make_shared<const OnePackage>(*model_, *segments));
  routes_.push_back(std::move(segments));
}

Routes::Routes(std::shared_ptr<const Model> model, std::shared_ptr<const Route> only)
    : model_(std::move(model)), routes_{std::move(only)} {}

Routes::~Routes() = default;

const Route& Routes::choose(const Request& request, const Options& options) const {
  std::size_t i = 0;
  while (!routes_[i]->gives(request, options)) ++i;  // the last one gives all
  if (request.slopes && !routes_[i]->takes_slopes(request))
    throw Error(
        NEML2_ERROR_UNSUPPORTED, "derivatives",
        "Derivatives of inputs are taken by kernels or under a hypothesis, without other views and schedulers, and "
        "not beside products with tangents or cotangents. Compile the model with --kernels auto, or unbind them.");
  return *routes_[i];
}

double Routes::seconds_per_point() const {
  const double measured = seconds_per_point_.load(std::memory_order_relaxed);
  return measured > 0 ? measured : model_->variables(Kind::unknown).empty() ? 2e-7 : 3e-6;
}

void Routes::note_time(double seconds, std::int64_t points) const {
  seconds_per_point_.store(seconds / static_cast<double>(points), std::memory_order_relaxed);
}

Borrowed::Borrowed(const Routes& routes) : routes_(routes) {
  const std::lock_guard lock(routes_.mutex_);
  if (routes_.waiting_.empty()) {
    workspace_ = std::make_unique<Workspace>();
    routes_.waiting_.reserve(routes_.num_workspaces_ + 1);  // so that it can always be given back
    ++routes_.num_workspaces_;
    return;
  }
  workspace_ = std::move(routes_.waiting_.back());
  routes_.waiting_.pop_back();
}

Borrowed::~Borrowed() {
  workspace_->forget();
  const std::lock_guard lock(routes_.mutex_);
  routes_.waiting_.push_back(std::move(workspace_));
}

}  // namespace neml2_capi::model
