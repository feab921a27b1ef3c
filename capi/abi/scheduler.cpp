// Schedulers: the devices that a model is opened for, and what each is given.
#include "capi/abi/scheduler.h"

#include <cmath>
#include <limits>
#include <string>

#include "capi/abi/handles.h"
#include "capi/abi/opening.h"
#include "capi/abi/source.h"

namespace neml2_capi::abi {
namespace {

using Entry = SchedulerObject::Entry;

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

// Throws for a device that is there. The CPU, which would contend with itself, may be there once for each runtime that
// is named, to compare them.
void require_apart(const SchedulerObject& scheduler, Device device, graph::Runtime runtime) {
  constexpr auto automatic = graph::Runtime::automatic;
  for (const Entry& other : scheduler.devices) {
    if (other.device != device) continue;
    const bool on_cpu = device.type == Device::Type::cpu;
    if (on_cpu && runtime != other.runtime && runtime != automatic && other.runtime != automatic) continue;
    throw Error(NEML2_ERROR_ARGUMENT, "device",
                join("The scheduler has the device ", device.str(), " (runtime ", name_of(other.runtime),
                     ") already; got it again (runtime ", name_of(runtime), "). Give it once",
                     on_cpu ? ", or, to compare runtimes, once for each of builtin, libtorch and tensors." : "."));
  }
}

}  // namespace

std::shared_ptr<const model::Dispatch> dispatch_of(const neml2_source& source) {
  const Shared use(source.scheduler, "scheduler");
  const std::vector<Entry>& entries = use->devices;
  if (source.device != 0 || source.runtime != NEML2_RUNTIME_AUTO)
    throw Error(NEML2_ERROR_ARGUMENT, source.device != 0 ? "device" : "runtime",
                "A source with a scheduler has its devices and runtimes: leave 'device' and 'runtime' 0.");
  if (entries.empty())
    throw Error(NEML2_ERROR_ARGUMENT, "scheduler", "The scheduler has no devices: call neml2_scheduler_add() first.");
  std::vector<model::Dispatch::Device> devices;
  for (const Entry& entry : entries)
    if (entries.size() > 1 && entry.share.batch_size == 0)
      throw Error(NEML2_ERROR_ARGUMENT, "batch_size",
                  join("The batch size of ", entry.device.str(), " is 0, all points at once, and the scheduler has ",
                       entries.size(), " devices: give the number of points of a sub-batch."));
  for (const Entry& entry : entries) {
    OpenedModel opened = open_model(source, entry.device, entry.runtime);
    const char* how = opened.text ? "kernels" : name_of(opened.model->runtime());
    devices.push_back(
        {join(entry.device.str(), " (", how, ")"), std::move(opened.model), entry.share, std::move(opened.text)});
  }
  return std::make_shared<const model::Dispatch>(std::move(devices));
}

}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_scheduler_create(neml2_scheduler** out) {
  return guarded([&] {
    neml2_scheduler*& handle = required(out, "out");  // first: else what is made would be lost
    handle = opened<neml2_scheduler>();
  });
}

int32_t neml2_scheduler_add(neml2_scheduler* scheduler, const neml2_device* device) {
  return alone(scheduler, "scheduler", [&](auto& its) {
    auto& devices = its.devices;
    const neml2_device given = read_sized(device, "device");
    const Entry entry{device_of(given.device, given.device_index), runtime_of(given.runtime),
                      share_of(given.batch_size, given.capacity, given.priority)};
    require_apart(its, entry.device, entry.runtime);
    devices.push_back(entry);
  });
}

int32_t neml2_scheduler_count(int64_t* out, const neml2_scheduler* scheduler) {
  return shared(scheduler, "scheduler", [&](auto& its) { required(out, "out") = std::ssize(its.devices); });
}

int32_t neml2_scheduler_inspect(neml2_device* out, const neml2_scheduler* scheduler, int64_t index) {
  return shared(scheduler, "scheduler", [&](auto& its) {
    const auto& devices = its.devices;
    const auto& [device, runtime, share] = entry_of(devices, index, "The scheduler", "devices");
    write_sized(out, {.size = 0,
                      .batch_size = share.batch_size,
                      .capacity = share.capacity,
                      .priority = share.priority,
                      .device = static_cast<std::int32_t>(device.type),
                      .device_index = device.index,
                      .runtime = static_cast<std::int32_t>(runtime),
                      .reserved = 0});
  });
}

int32_t neml2_scheduler_keep_rank(neml2_scheduler* scheduler, int64_t local_rank, int64_t local_size) {
  return alone(scheduler, "scheduler", [&](auto& its) {
    auto& devices = its.devices;
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
  });
}

void neml2_scheduler_free(neml2_scheduler** scheduler) { release(scheduler); }
