// The route of a model that has point kernels: its points in lanes, without a tensor on the way.
#pragma once

#include <memory>

#include "capi/evaluation/route.h"
#include "capi/kernels/engine.h"
#include "capi/model/model.h"

namespace neml2_capi::model {

// Returns the kernels of a model; null if it has none. The model must outlive them, and the condensation, which may be null.
std::unique_ptr<const kernels::Engine> engine_for(const Model& model, const kernels::Condensation* condensation);

class Lanes final : public Route {
 public:
  // If there are no kernels, it gives nothing. The model must outlive it.
  explicit Lanes(const Model& model);

  bool solves() const override { return !model_.variables(Kind::unknown).empty(); }
  bool takes_slopes(const Request&) const override { return true; }
  // Throws NEML2_ERROR_UNSUPPORTED if the options require kernels that cannot give it.
  bool gives(const Request& request, const Options& options) const override;
  ChunkSize chunk_size(const Options& options, const Request& request) const override;
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  kernels::Asked asked_of(const Request& request) const;
  std::string reason_against(const Request& request, const Options& options) const;

  const Model& model_;
  std::unique_ptr<const kernels::Engine> engine_;  // null if there are no kernels
};

}  // namespace neml2_capi::model
