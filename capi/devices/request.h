// Request and results of an evaluation over tensors of a device that the processor does not read.
#pragma once

#include <array>
#include <vector>

#include "capi/tensor/tensor.h"

namespace neml2_capi::model {

// Tensors of the model's device, in the order of its variables, of shapes (*own batch, *point shape), whose batches
// broadcast to `batch`; empty ones are zero.
struct DeviceRequest {
  Dims batch;
  Vector<Tensor> inputs, parameters;
  Vector<Tensor> tangents;    // by input
  Vector<Tensor> cotangents;  // by output
  bool jvp = false, vjp = false, blocks = false;
  bool by_parameters = false;           // what vjp and blocks are with respect to
  std::vector<Dims> adjoint_batches{};  // of the inputs or parameters, to which adjoints are summed
  bool blocks_vary = false;             // those that are the same for all points are wanted for each
};

// Results of shapes (*batch, *point shape); empty if there is none. A point that failed is NaN.
struct DeviceResults {
  Vector<Tensor> outputs;
  Vector<Tensor> jvps;           // by output
  Vector<Tensor> adjoints;       // by input or parameter
  Vector<Tensor> blocks;         // by derivative
  std::array<Tensor, 5> report;  // by NEML2_REPORT_*
  Vector<Tensor> unknowns;       // the last iterates of failed points; empty if none failed
  bool any_failed = false;
};

}  // namespace neml2_capi::model
