// Devices behind the handle of a scheduler.
#pragma once

#include <memory>
#include <vector>

#include "capi/devices/dispatch.h"
#include "capi/package/runtime.h"

struct neml2_scheduler {
  struct Entry {
    neml2_capi::Device device;
    neml2_capi::aoti::Runtime runtime;
    neml2_capi::threads::Scheduler::Device share;
  };
  std::vector<Entry> devices;
};

namespace neml2_capi::abi {

// Opens the model of a source on all devices of its scheduler.
std::shared_ptr<const model::Dispatch> dispatch_of(const neml2_source& source);

}  // namespace neml2_capi::abi
