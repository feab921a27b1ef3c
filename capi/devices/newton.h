// Newton's method over tensors of a device, which all points stay in: a point that is done keeps its value. The
// processor waits for one flag per iteration, whether any point is left.
#pragma once

#include "capi/newton/newton.h"
#include "capi/newton/system.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::model {

// Outcome of each point: tensors of (points,) on the device.
struct DeviceOutcome {
  Tensor status, iterations;           // int32
  Tensor residual_norm;                // float64
  Tensor initial_norm, suggested_cut;  // float64
  Tensor history;                      // float64, (points, miters); empty unless it was kept
  bool any_failed = false;

  // Returns the outcome of points before any segment.
  static DeviceOutcome none(std::int64_t points, Device device);
  // Returns the mask of the points that failed.
  Tensor failed() const;
  // Adds the outcome of a later segment.
  void add(const DeviceOutcome& later);
};

// Solves for `u`, which holds the initial guess, as newton::solve() does.
DeviceOutcome solve_on_device(newton::System& system, Groups& u, const newton::Settings& settings);

// Returns the rows where the mask, (points,), is as wanted, with NaN elsewhere.
Tensor select(const Tensor& rows, const Tensor& mask, bool wanted);
Groups select(const Groups& groups, const Tensor& mask, bool wanted);

}  // namespace neml2_capi::model
