// An evaluation over arrays of the host, of a model that computes over tensors of a device: there and back again.
#pragma once

#include "capi/model/model.h"

namespace neml2_capi::model {

// What Model::evaluate_points() does, for a compute device that is not the host.
Tally evaluate_on_device(const Model& model, const Evaluation& evaluation, const Options& options);

}  // namespace neml2_capi::model
