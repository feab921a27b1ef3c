// Request and results of an evaluation over tensors of a device that the processor does not read.
#pragma once

#include <array>
#include <vector>

#include "capi/values/bindings.h"
#include "capi/values/by_part.h"

namespace neml2_capi::model {

// Tensors of the model's device, in the order of its variables, of shapes (*own batch, *point shape), whose batches
// broadcast to `batch`; empty ones are zero.
struct DeviceRequest {
  Dims batch;
  ByPart<Vector<Tensor>> given;
  ByPart<bool> wants;                         // of the derivatives
  ByPart<std::vector<Dims>> adjoint_batches;  // to which adjoints are summed
  bool blocks_vary = false;                   // those that are the same for all points are wanted for each

  bool by_parameters() const { return wants[Part::parameter_block] || wants[Part::parameter_adjoint]; }
  bool by_inputs() const { return wants[Part::jvp] || wants[Part::block] || wants[Part::adjoint]; }
};

// Results of shapes (*batch, *point shape); empty if there is none. A point that failed is NaN.
struct DeviceResults {
  ByPart<Vector<Tensor>> of;               // outputs, and the derivatives that were asked for
  std::array<Tensor, num_reports> report;  // by NEML2_REPORT_*; empty without the option that it needs
  Vector<Tensor> unknowns;                 // the last iterates of failed points; empty if none failed
  bool any_failed = false;
};

}  // namespace neml2_capi::model
