// Rescue of points that did not converge: the same equations by row pivoting and with a line search; then a homotopy, which
// moves the inputs from the last step's to this step's, and begins at each solution from the one before. The last solution
// is one of the very equations of the step.
#pragma once

#include "capi/evaluation/route_around.h"

namespace neml2_capi::model {

class Rescue final : public RouteAround {
 public:
  // Evaluates by another route, which must outlive it, and what that left unsolved again.
  explicit Rescue(const Route& route) : RouteAround(route) {}

  // Throws NEML2_ERROR_UNSUPPORTED if the points converge as a batch.
  void check(const Options& options, std::int64_t points) const override;
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;
};

}  // namespace neml2_capi::model
