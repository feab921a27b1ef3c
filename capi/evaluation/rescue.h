// Rescue of points that did not converge: the same equations by row pivoting and with a line search; then a homotopy, which
// moves the inputs from the last step's to this step's, and begins at each solution from the one before. The last solution
// is one of the very equations of the step.
#pragma once

#include "capi/evaluation/route.h"

namespace neml2_capi::model {

class Rescue final : public Route {
 public:
  // Evaluates by another route, which must outlive it, and what that left unsolved again.
  explicit Rescue(const Route& route) : route_(route) {}

  bool gives(const Request& request, const Options& options) const override { return route_.gives(request, options); }
  // Throws NEML2_ERROR_UNSUPPORTED if the points converge as a batch.
  void check(const Options& options, std::int64_t points) const override;
  ChunkSize chunk_size(const Options& options, const Request& request) const override {
    return route_.chunk_size(options, request);
  }
  std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                            std::int64_t size) const override {
    return route_.end_of_range(options, bindings, begin, size);
  }
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  const Route& route_;
};

}  // namespace neml2_capi::model
