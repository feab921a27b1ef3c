// Schedulers: the devices that a model is loaded for, and what each is given.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "capi/abi/handles.h"
#include "capi/abi/runtime.h"

struct neml2_scheduler {
  struct Device {
    std::string name, runtime;
    neml2_capi::threads::Scheduler::Device share;
  };
  std::vector<Device> devices;
};

namespace neml2_capi::abi {
namespace {

const neml2_scheduler::Device& device_at(const neml2_scheduler* scheduler, std::int64_t index) {
  const auto& devices = required(scheduler, "scheduler").devices;
  if (index < 0 || index >= std::ssize(devices))
    throw Error(NEML2_ERROR_ARGUMENT, "index",
                join("The scheduler has ", devices.size(), " devices; there is none at ", index, "."));
  return devices[static_cast<std::size_t>(index)];
}

threads::Scheduler::Device share_of(std::int64_t batch_size, std::int64_t capacity, double priority) {
  if (batch_size < 0)
    throw Error(NEML2_ERROR_ARGUMENT, "batch_size",
                join("The batch size is a number of points, or 0 for all points at once; got ", batch_size, "."));
  if (capacity < 0 || (capacity > 0 && capacity < batch_size))
    throw Error(NEML2_ERROR_ARGUMENT, "capacity",
                join("The capacity is a number of points, at least the batch size ", batch_size,
                     ", or 0 for twice that; got ", capacity, "."));
  if (!std::isfinite(priority))
    throw Error(NEML2_ERROR_ARGUMENT, "priority", join("The priority is a finite number; got ", priority, "."));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return {batch_size, capacity > 0 ? capacity : batch_size > most / 2 ? most : 2 * batch_size, priority};
}

// No device twice. Of the CPU, which would contend with itself, once for each runtime that is named, to compare them.
void require_apart(const neml2_scheduler& scheduler, Device device, const std::string& name,
                   const std::string& runtime) {
  for (const neml2_scheduler::Device& other : scheduler.devices) {
    if (aoti::device_named(other.name) != device) continue;
    const bool compared =
        device.type == Device::Type::cpu && runtime != other.runtime && runtime != "auto" && other.runtime != "auto";
    if (!compared)
      throw Error(NEML2_ERROR_ARGUMENT, "device",
                  join("The scheduler has the device ", other.name, " (runtime ", other.runtime, ") already; got ",
                       name, " (runtime ", runtime, "). Give it once",
                       device.type == Device::Type::cpu
                           ? ", or, to compare runtimes, once for each of builtin, libtorch and tensors."
                           : "."));
  }
}

// Loads the model of each device, and what tells of it.
std::vector<model::Dispatch::Device> load(const char* path, const char* name, const char* dtype,
                                          const neml2_scheduler& scheduler) {
  const char* type = dtype ? dtype : "float64";
  std::vector<model::Dispatch::Device> devices;
  for (const neml2_scheduler::Device& device : scheduler.devices) {
    const artifact::Metadata metadata = name ? artifact::read_stub_metadata(path, name, device.name, type)
                                             : artifact::read_metadata(path, device.name, type);
    auto model = model::Model::load(metadata, {runtime_named(device.runtime.c_str()), aoti::device_named(device.name)});
    std::string label = join(device.name, " (", name_of(model->runtime()), ")");
    devices.push_back({std::move(label), std::move(model), device.share});
  }
  return devices;
}

}  // namespace
}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_scheduler_create(neml2_scheduler** out) {
  return guarded([&] {
    neml2_scheduler*& handle = required(out, "out");  // first: else what is made would be lost
    handle = new neml2_scheduler;
    return NEML2_OK;
  });
}

int32_t neml2_scheduler_add(neml2_scheduler* scheduler, const char* device, const char* runtime, int64_t batch_size,
                            int64_t capacity, double priority) {
  return guarded([&] {
    auto& devices = required(scheduler, "scheduler").devices;
    const std::string name = &required(device, "device");
    const std::string on = name_of(runtime_named(runtime));
    require_apart(*scheduler, aoti::device_named(name), name, on);
    devices.push_back({name, on, share_of(batch_size, capacity, priority)});
    return NEML2_OK;
  });
}

int32_t neml2_scheduler_count(int64_t* out, const neml2_scheduler* scheduler) {
  return guarded([&] {
    required(out, "out") = std::ssize(required(scheduler, "scheduler").devices);
    return NEML2_OK;
  });
}

int32_t neml2_scheduler_info(const char** device, const char** runtime, int64_t* batch_size, int64_t* capacity,
                             double* priority, const neml2_scheduler* scheduler, int64_t index) {
  return guarded([&] {
    const neml2_scheduler::Device& added = device_at(scheduler, index);
    if (device) *device = added.name.c_str();
    if (runtime) *runtime = added.runtime.c_str();
    if (batch_size) *batch_size = added.share.batch_size;
    if (capacity) *capacity = added.share.capacity;
    if (priority) *priority = added.share.priority;
    return NEML2_OK;
  });
}

int32_t neml2_scheduler_keep_rank(neml2_scheduler* scheduler, int64_t local_rank, int64_t local_size) {
  return guarded([&] {
    auto& devices = required(scheduler, "scheduler").devices;
    if (local_size < 1 || local_rank < 0 || local_rank >= local_size)
      throw Error(
          NEML2_ERROR_ARGUMENT, "local_rank",
          join("The processes of a node are counted from 0; got the rank ", local_rank, " of ", local_size, "."));
    if (devices.empty())
      throw Error(NEML2_ERROR_ARGUMENT, "scheduler",
                  "The scheduler has no devices to choose from: call neml2_scheduler_add() first.");
    if (local_size < std::ssize(devices))
      throw Error(NEML2_ERROR_ARGUMENT, "local_size",
                  join("The scheduler has ", devices.size(), " devices and this node ", local_size,
                       " processes: some devices would be idle. Start more processes, or add fewer devices."));
    devices = {devices[static_cast<std::size_t>(local_rank % std::ssize(devices))]};
    return NEML2_OK;
  });
}

void neml2_scheduler_free(neml2_scheduler** scheduler) { release(scheduler); }

int32_t neml2_model_load_scheduled(neml2_model** out, const char* path, const char* name, const char* dtype,
                                   const neml2_scheduler* scheduler) {
  return guarded([&] {
    required(out, "out");
    required(path, "path");
    const auto& devices = required(scheduler, "scheduler").devices;
    if (devices.empty())
      throw Error(NEML2_ERROR_ARGUMENT, "scheduler", "The scheduler has no devices: call neml2_scheduler_add() first.");
    for (const neml2_scheduler::Device& device : devices)
      if (devices.size() > 1 && device.share.batch_size == 0)
        throw Error(NEML2_ERROR_ARGUMENT, "batch_size",
                    join("The batch size of ", device.name, " is 0, all points at once, and the scheduler has ",
                         devices.size(), " devices: give the number of points of a sub-batch."));
    *out = new neml2_model(std::make_shared<const model::Dispatch>(load(path, name, dtype, *scheduler)));
    return NEML2_OK;
  });
}

int32_t neml2_model_points_evaluated(int64_t* out, const neml2_model* model, int64_t index) {
  return guarded([&] {
    required(out, "out");
    const model::Dispatch* dispatch = required(model, "model").dispatch.get();
    if (!dispatch)
      throw Error(NEML2_ERROR_ARGUMENT, "model",
                  "The model has no scheduler that counts: load it with neml2_model_load_scheduled().");
    *out = dispatch->points_evaluated(index);
    return NEML2_OK;
  });
}
