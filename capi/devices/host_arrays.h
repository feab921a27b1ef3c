// The route over arrays of the host of a model that computes over tensors of a device: there and back again.
#pragma once

#include "capi/evaluation/route.h"
#include "capi/model/model.h"

namespace neml2_capi::model {

class HostArrays final : public Route {
 public:
  // The model must outlive it.
  explicit HostArrays(const Model& model) : model_(model) {}

  void check(const Options& options, std::int64_t points) const override;
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  const Model& model_;
};

}  // namespace neml2_capi::model
