// Object behind the handle of a call.
#pragma once

#include <optional>

#include "capi/abi/arguments.h"
#include "capi/accelerator/device_call.h"
#include "capi/evaluation/arrays.h"
#include "capi/evaluation/plan.h"

namespace neml2_capi::abi {

// Bindings of a call; arrays that are not bound are null.
struct CallObject {
  explicit CallObject(const ModelObject& of)
      : model(of.value),
        dispatch(of.dispatch),
        routes(of.routes),
        bindings(model::bindings_for(*model)),
        overrides(bindings.parameters.size()),
        text(of.text) {}

  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const model::Dispatch> dispatch;  // null without a scheduler
  std::shared_ptr<const model::Routes> routes;
  model::Bindings bindings;
  std::vector<model::Points> overrides;  // of parameters
  model::Snapshot snapshot;              // options and the other parameters, when the last run began
  std::optional<model::Plan> plan;       // of these bindings, which are complete; none after a change
  model::Workspace workspace;
  std::shared_ptr<const accelerator::ByText> text;     // null but on a device by text
  std::unique_ptr<accelerator::DeviceCall> on_device;  // whose memory the arrays are; else the host's
};

// Throws NEML2_ERROR_UNSUPPORTED if the arrays are in the memory of a device.
inline void require_arrays_of_host(const CallObject& call, const char* what) {
  if (call.on_device)
    throw Error(NEML2_ERROR_UNSUPPORTED, "memory",
                join(what,
                     " over arrays of the host only: take the memory of the device back with "
                     "neml2_call_memory_set(call, NULL), and bind arrays."));
}

}  // namespace neml2_capi::abi
