// The evaluation of a model over tensors of a device.
#pragma once

#include "capi/devices/request.h"
#include "capi/model/model.h"

namespace neml2_capi::model {

// Throws NEML2_ERROR_SHAPE or _UNSUPPORTED if so many points cannot be evaluated with these options.
void check_on_device(const Model& model, const Options& options, std::int64_t points);
// All points at once, through all segments, by the operators of libtorch and the packages alone.
DeviceResults evaluate_on_device(const Model& model, const DeviceRequest& request, const Options& options);

}  // namespace neml2_capi::model
