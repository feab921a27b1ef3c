// A plan: how some points are evaluated, decided once. It has no addresses, and values of parameters change nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "capi/evaluation/bounded.h"
#include "capi/evaluation/rescue.h"
#include "capi/evaluation/routes.h"

namespace neml2_capi::model {

class Plan {
 public:
  // Throws NEML2_ERROR_SHAPE or _UNSUPPORTED if the points cannot be evaluated. The routes must outlive it.
  Plan(const Routes& routes, const Options& options, const Request& request);

  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const Model& model() const { return routes_.model(); }
  const Routes& routes() const { return routes_; }
  const Options& options() const { return options_; }
  const Request& request() const { return request_; }
  const Route& route() const {
    if (bounded_.is_needed()) return bounded_;
    return within_bounds();
  }
  int threads() const { return threads_; }

  // Evaluates bindings that ask for this request, and have passed inputs_to_copy(), with a workspace that holds nothing
  // of other ones. Rethrows the first range's exception.
  Tally run(const Bindings& bindings, Workspace& workspace) const;
  // The same without a capsule, for a part of an evaluation.
  Tally evaluate(const Bindings& bindings, Workspace& workspace) const;
  // Throws NEML2_ERROR_SHAPE if a parameter varies within a fixed batch, wherever that is.
  void check(const Bindings& bindings) const;

 private:
  std::int64_t chunk_size() const;
  const Route& within_bounds() const {
    if (rescue_) return *rescue_;
    return chosen_;
  }

  const Routes& routes_;
  Options options_;
  Request request_;
  const Route& chosen_;
  std::optional<Rescue> rescue_;  // around it, if the options ask for that
  Bounded bounded_;               // around these, if there are bounds
  int threads_;
  Route::ChunkSize chunk_;
};

// One evaluation, which nothing is kept of.
Tally evaluate(const Routes& routes, const Options& options, const Bindings& bindings);

}  // namespace neml2_capi::model
