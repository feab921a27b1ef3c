// Devices behind the handle of a scheduler.
#pragma once

#include <memory>
#include <vector>

#include "capi/abi/handles.h"
#include "capi/devices/dispatch.h"
#include "capi/graph/runtime.h"

namespace neml2_capi::abi {

struct SchedulerObject {
  struct Entry {
    Device device;
    graph::Runtime runtime;
    threads::Scheduler::Device share;
  };
  std::vector<Entry> devices;
};

// Opens the model of a source on all devices of its scheduler.
std::shared_ptr<const model::Dispatch> dispatch_of(const neml2_source& source);

}  // namespace neml2_capi::abi
