// Marks points of a device with values or derivatives that are not finite, by the rule of Marks.
#pragma once

#include "capi/devices/newton.h"
#include "capi/devices/request.h"
#include "capi/model/model.h"

namespace neml2_capi::model {

// Marks the points of an outcome by all that was given and found, which has the shapes that the caller sees.
void mark(const Model& model, const DeviceRequest& request, const DeviceResults& results, DeviceOutcome& outcome);

}  // namespace neml2_capi::model
