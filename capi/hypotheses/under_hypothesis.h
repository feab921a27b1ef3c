// Route of a law under a hypothesis: Newton's method finds the free strains of each point, around the law, until the
// stresses that belong to them vanish; derivatives are condensed.
#pragma once

#include <cstdint>
#include <memory>

#include "capi/evaluation/others.h"
#include "capi/evaluation/routes.h"
#include "capi/hypotheses/reduction.h"
#include "capi/kernels/engine.h"

namespace neml2_capi::model {

class UnderHypothesis final : public Route {
 public:
  // Both must fit each other. The routes are of the law itself. Its kernels solve for the free strains, too, unless the law is
  // evaluated on a device.
  UnderHypothesis(std::shared_ptr<const Routes> law, std::unique_ptr<const Reduction> reduction, bool on_device);

  bool takes_slopes(const Request& request) const override;
  // Throws NEML2_ERROR_UNSUPPORTED if the points converge as a batch.
  void check(const Options& options, std::int64_t points) const override;
  ChunkSize chunk_size(const Options& options, const Request& request) const override;
  std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                            std::int64_t size) const override;
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  // Returns kernels that solve for the free strains, too; null if they do not give what is asked for.
  const kernels::Engine* lanes_for(const Plan& plan, const Bindings& bindings) const;

  bool are_whole(const Model& boundary, const Bindings& bindings) const;
  static bool tell_of_themselves(const Bindings& bindings, std::size_t one, std::size_t other);
  // Returns the points that fail for bounds of what is given, whatever is found.
  Vector<LeftOut> beyond_as_given(const Plan& plan, const Bindings& bindings, const Range& range,
                                  Vector<Exceeded>& exceeded) const;

  std::shared_ptr<const Routes> law_;
  std::unique_ptr<const Reduction> reduction_;
  std::unique_ptr<const kernels::Engine> lanes_;
};

}  // namespace neml2_capi::model
