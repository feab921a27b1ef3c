// Route of a model whose points a scheduler spreads over devices.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capi/evaluation/routes.h"
#include "capi/threads/scheduler.h"

namespace neml2_capi::model {

class Dispatch final : public Route {
 public:
  struct Device {
    std::string name;  // to a reader: "cpu (builtin)"
    std::shared_ptr<Model> model;
    threads::Scheduler::Device share;
    std::shared_ptr<const Route> route = nullptr;  // of the model, if it has only one
  };

  // Throws NEML2_ERROR_ARTIFACT unless all devices have the same model, and NEML2_ERROR_UNSUPPORTED if one takes
  // fixed batches that its sub-batches are no multiples of. The first model keeps the parameters and options of all.
  explicit Dispatch(std::vector<Device> devices);

  const std::shared_ptr<Model>& primary() const { return devices_.front().model; }
  // Throws NEML2_ERROR_UNSUPPORTED unless the points are all on one device that the processor is.
  void require_solvable() const;

  void check(const Options& options, std::int64_t points) const override;
  // Throws the error of a sub-batch, or, if several failed, an AggregateError.
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

  // Returns how many points a device has evaluated. Throws NEML2_ERROR_ARGUMENT if there is none.
  std::int64_t points_evaluated(std::int64_t device) const;

 private:
  class Spread;
  // Tells whether one device evaluates this many points as they are, all at once: they are neither split nor moved.
  bool takes_whole(std::int64_t points) const;
  std::int64_t most_points(const Device& device, std::int64_t points) const;

  std::vector<Device> devices_;
  std::vector<std::unique_ptr<const Routes>> routes_;         // by device
  mutable std::vector<std::atomic<std::int64_t>> evaluated_;  // points, by device
  mutable threads::Scheduler scheduler_;
};

}  // namespace neml2_capi::model
