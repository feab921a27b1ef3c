// A model whose points are spread over devices by a scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/base/error.h"
#include "capi/model/model.h"
#include "capi/threads/scheduler.h"

namespace neml2_capi::model {

class Dispatch {
 public:
  struct Device {
    std::string name;  // to a reader: "cpu (builtin)"
    std::shared_ptr<Model> model;
    threads::Scheduler::Device share;
  };

  // Throws NEML2_ERROR_ARTIFACT unless all devices have the same model, and NEML2_ERROR_UNSUPPORTED where one takes
  // fixed batches that its sub-batches are no multiples of.
  explicit Dispatch(std::vector<Device> devices);

  // The model of the first device: it keeps the parameters and options of all.
  const std::shared_ptr<Model>& primary() const { return devices_.front().model; }
  std::size_t size() const { return devices_.size(); }
  // Throws NEML2_ERROR_UNSUPPORTED unless the points are all on one device that the processor is.
  void require_solvable() const;

  struct Outcome {
    Tally tally;
    std::vector<Error> parts;  // of the sub-batches with failed points, in the order of their points
  };
  // As Model::evaluate(). Throws the error of a sub-batch, or, where several failed, an AggregateError.
  Outcome evaluate(const Evaluation& evaluation, const Options& options) const;

  // The model that evaluates this many points as they are, all at once; null where they are split or moved. What it
  // repeats is to be counted.
  const Model* whole(std::int64_t points) const;
  void count(std::size_t device, std::int64_t points) const { evaluated_[device] += points; }

  // How many points a device has evaluated; throws NEML2_ERROR_ARGUMENT where there is none.
  std::int64_t points_evaluated(std::int64_t device) const;

 private:
  class Spread;
  Outcome spread(const Evaluation& evaluation, const Options& options) const;

  std::vector<Device> devices_;
  mutable std::vector<std::atomic<std::int64_t>> evaluated_;  // points, by device
  mutable threads::Scheduler scheduler_;
};

// An evaluation of a model, on the devices of its scheduler where it has one.
Dispatch::Outcome evaluate(const Model& model, const Dispatch* dispatch, const Evaluation& evaluation,
                           const Options& options);

}  // namespace neml2_capi::model
