// The route of a model that has point kernels: its points in lanes, without a tensor on the way.
#pragma once

#include <memory>

#include "capi/evaluation/route.h"
#include "capi/kernels/engine.h"
#include "capi/model/model.h"

namespace neml2_capi::model {

class Lanes final : public Route {
 public:
  // Where there are no kernels, it gives nothing. The model must outlive it.
  explicit Lanes(const Model& model);

  // Throws NEML2_ERROR_UNSUPPORTED where the options require kernels that cannot give it.
  bool gives(const Request& request, const Options& options) const override;
  void check(const Options&, std::int64_t) const override {}
  ChunkSize chunk_size(const Options& options, const Request& request) const override;
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  kernels::Asked asked_of(const Request& request) const;
  std::string reason_against(const Request& request, const Options& options) const;

  const Model& model_;
  std::unique_ptr<const kernels::Engine> engine_;  // null where there are no kernels
};

}  // namespace neml2_capi::model
