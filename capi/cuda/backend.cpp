// Devices of CUDA, by the driver alone: a backend.
#include "capi/graph/backend.h"

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/cuda/compiler.h"
#include "capi/cuda/library.h"

namespace neml2_capi::cuda {
namespace {

// The primary context of a device. A reset of the device, cudaDeviceReset() for example, ends it with all that was made in
// it, which the driver must not be given again: it does not check. The next one may have the same address.
struct Context {
  int device = 0;
  Object object = nullptr;
  unsigned long long id = 0;

  bool is_gone() const {
    unsigned flags = 0;
    int active = 0;
    unsigned long long now = 0;
    return driver().cuDevicePrimaryCtxGetState(device, &flags, &active) != 0 || !active ||
           driver().cuCtxGetId(object, &now) != 0 || now != id;
  }
};

Context primary_context(int device) {
  Context made{device};
  require(driver().cuDevicePrimaryCtxRetain(&made.object, device), "cuDevicePrimaryCtxRetain");
  require(driver().cuCtxGetId(made.object, &made.id), "cuCtxGetId");
  return made;
}

// Scope in which a context is this thread's.
class Current {
 public:
  explicit Current(const Context& context) {
    require(context.is_gone() ? destroyed : driver().cuCtxPushCurrent_v2(context.object), "cuCtxPushCurrent");
  }
  ~Current() {
    Object ignored = nullptr;
    driver().cuCtxPopCurrent_v2(&ignored);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

// Gives something of a context back. If the device is lost, that is lost with it.
template <class GiveBack>
void with(const Context& context, GiveBack&& give_back) noexcept {
  if (context.is_gone() || driver().cuCtxPushCurrent_v2(context.object) != 0) return;
  give_back();
  Object ignored = nullptr;
  driver().cuCtxPopCurrent_v2(&ignored);
}

class Memory final : public graph::DeviceMemory {
 public:
  Memory(const Context& context, Address address) : DeviceMemory(address), context_(context) {}
  ~Memory() override {
    with(context_, [&] { driver().cuMemFree_v2(handle()); });
  }

 private:
  Context context_;
};

// Error of a kernel for whose stack memory is missing.
Error no_stack(Object kernel) {
  int bytes = 0;
  driver().cuFuncGetAttribute(&bytes, local_bytes, kernel);
  return Error(NEML2_ERROR_MEMORY, "cuda",
               join("The CUDA device has no memory left for the stack of a kernel: ", bytes,
                    " bytes a thread. Other programs, models and arrays hold the device's memory: give some back, or "
                    "evaluate fewer points at once, by the option chunk."));
}

using Functions = std::array<Object, std::size(graph::kernel_names)>;

class Queue final : public graph::DeviceQueue {
 public:
  // Over a stream of the caller's, or of its own.
  Queue(std::shared_ptr<const void> owner, const Context& context, const Functions& functions,
        std::optional<Object> of_caller)
      : owner_(std::move(owner)), context_(context), functions_(functions), is_own_(!of_caller) {
    const Current here(context_);
    if (of_caller)
      stream_ = *of_caller;
    else
      require(driver().cuStreamCreate(&stream_, non_blocking), "cuStreamCreate");
    for (Object& event : events_) require(driver().cuEventCreate(&event, 0), "cuEventCreate");
  }
  // The caller's stream may be gone, and an event of it stays.
  ~Queue() override {
    with(context_, [&] {
      is_own_ ? driver().cuStreamSynchronize(stream_) : driver().cuEventSynchronize(events_[flushed]);
      for (Object event : events_) driver().cuEventDestroy_v2(event);
      if (is_own_) driver().cuStreamDestroy_v2(stream_);
    });
  }

  void require_device() const override { const Current here(context_); }
  std::unique_ptr<graph::DeviceMemory> allocate(std::int64_t bytes) override {
    const Current here(context_);
    Address address = 0;
    require(driver().cuMemAlloc_v2(&address, static_cast<Size>(bytes)), "cuMemAlloc");
    return std::make_unique<Memory>(context_, address);
  }
  // Its pages are locked.
  std::shared_ptr<void> allocate_on_host(std::int64_t bytes) override {
    const Current here(context_);
    void* block = nullptr;
    require(driver().cuMemAllocHost_v2(&block, static_cast<Size>(bytes)), "cuMemAllocHost");
    return {block, [context = context_](void* given) { with(context, [&] { driver().cuMemFreeHost(given); }); }};
  }

  void upload(const graph::DeviceMemory& to, const void* from, std::int64_t bytes) override {
    if (bytes == 0) return;
    const Current here(context_);
    require(driver().cuMemcpyHtoDAsync_v2(to.handle(), from, static_cast<Size>(bytes), stream_), "cuMemcpyHtoDAsync");
  }
  void download(void* to, const graph::DeviceMemory& from, std::int64_t first, std::int64_t bytes) override {
    if (bytes == 0) return;
    const Current here(context_);
    require(driver().cuMemcpyDtoHAsync_v2(to, from.handle() + static_cast<std::uint64_t>(first),
                                          static_cast<Size>(bytes), stream_),
            "cuMemcpyDtoHAsync");
  }
  void launch(graph::Kernel which, std::int64_t items, std::span<const graph::DeviceArgument> arguments) override {
    constexpr std::int64_t group = 128;
    Vector<void*> values;
    for (const graph::DeviceArgument& argument : arguments) values.push_back(const_cast<void*>(argument.value));
    const Current here(context_);
    const auto note = [&](std::size_t event) {
      if (which == graph::Kernel::law) require(driver().cuEventRecord(events_[event], stream_), "cuEventRecord");
    };
    note(begun);
    const Object kernel = functions_[static_cast<std::size_t>(which)];
    const auto groups = static_cast<unsigned>((items + group - 1) / group);
    const Status status =
        driver().cuLaunchKernel(kernel, groups, 1, 1, group, 1, 1, 0, stream_, values.data(), nullptr);
    if (status == out_of_memory) throw no_stack(kernel);
    require(status, "cuLaunchKernel");
    note(ended);
  }
  void flush() override {
    const Current here(context_);
    require(driver().cuEventRecord(events_[flushed], stream_), "cuEventRecord");
  }
  void wait() override {
    const Current here(context_);
    require(driver().cuEventSynchronize(events_[flushed]), "cuEventSynchronize");
  }
  double seconds() const override {
    const Current here(context_);
    float milliseconds = 0;
    require(driver().cuEventElapsedTime(&milliseconds, events_[begun], events_[ended]), "cuEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  enum : int { begun, ended, flushed };  // the last run of a law, and all that was handed over

  std::shared_ptr<const void> owner_;  // of the functions
  Context context_;
  Object stream_ = nullptr;
  Functions functions_;
  bool is_own_;
  std::array<Object, 3> events_ = {};
};

class Program final : public graph::DeviceProgram, public std::enable_shared_from_this<Program> {
 public:
  Program(const Context& context, const std::string& cubin) : context_(context) {
    const Current here(context_);
    require(driver().cuModuleLoadData(&module_, cubin.data()), "cuModuleLoadData");
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      const Status status = driver().cuModuleGetFunction(&functions_[i], module_, graph::kernel_names[i]);
      if (status != 0) driver().cuModuleUnload(module_);
      require(status, join("cuModuleGetFunction of ", graph::kernel_names[i]).c_str());
    }
  }
  ~Program() override {
    with(context_, [&] { driver().cuModuleUnload(module_); });
  }

  std::unique_ptr<graph::DeviceQueue> queue() const override {
    return std::make_unique<Queue>(shared_from_this(), context_, functions_, std::nullopt);
  }
  std::unique_ptr<graph::DeviceQueue> queue_over(void* of_caller) const override {
    const Current here(context_);
    Object of_stream = nullptr;  // the current one of a default stream
    if (driver().cuStreamGetCtx(of_caller, &of_stream) == 0 && of_stream != context_.object)
      throw Error(NEML2_ERROR_ARGUMENT, "queue",
                  "The stream is of another device than the model, or of another context. Give a cudaStream_t of the "
                  "model's device, or NULL for the default stream.");
    return std::make_unique<Queue>(shared_from_this(), context_, functions_, of_caller);
  }
  bool takes_addresses() const override { return true; }

 private:
  Context context_;
  Object module_ = nullptr;
  Functions functions_ = {};
};

class OneDevice final : public graph::OpenDevice {
 public:
  explicit OneDevice(int index) {
    char name[256] = {};
    int major = 0, minor = 0;
    Size bytes = 0;
    int device = 0;
    require(driver().cuDeviceGet(&device, index), "cuDeviceGet");
    require(driver().cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
    require(driver().cuDeviceGetAttribute(&major, attribute_major, device), "cuDeviceGetAttribute");
    require(driver().cuDeviceGetAttribute(&minor, attribute_minor, device), "cuDeviceGetAttribute");
    require(driver().cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
    require(driver().cuDriverGetVersion(&version_), "cuDriverGetVersion");
    context_ = primary_context(device);
    name_ = name;
    architecture_ = join("sm_", major, minor);
    memory_ = static_cast<std::int64_t>(bytes);
  }

  std::string name() const override { return name_; }
  std::string key() const override { return join("cuda ", version_, "\n", name_, "\n", compiler_key(architecture_)); }
  std::int64_t memory() const override { return memory_; }
  std::int64_t largest_piece() const override { return memory_; }
  bool is_gone() const { return context_.is_gone(); }
  std::string compile(std::string_view text) const override { return cuda::compile(text, architecture_); }
  std::shared_ptr<const graph::DeviceProgram> load(const std::string& cubin) const override {
    return std::make_shared<const Program>(context_, cubin);
  }

 private:
  int version_ = 0;
  Context context_;  // the one of all libraries of the process, kept for its life
  std::string name_, architecture_;
  std::int64_t memory_ = 0;
};

constinit locks::Mutex mutex;
constinit locks::Lazy<std::map<int, std::shared_ptr<const OneDevice>>> opened;  // never closed

class CudaDriver final : public graph::Driver {
 public:
  bool serves(Device device) const override { return device.type == Device::Type::cuda; }
  const char* text() const override { return "device.cu"; }
  const char* target() const override { return "cuda"; }
  std::shared_ptr<const graph::OpenDevice> open(Device device) const override {
    {
      const std::lock_guard lock(mutex);
      const auto found = opened.get().find(device.index);
      if (found != opened.get().end() && !found->second->is_gone()) return found->second;
    }
    int count = 0;
    require(cuda::driver().cuDeviceGetCount(&count), "cuDeviceGetCount");
    if (device.index >= count)
      throw Error(NEML2_ERROR_UNSUPPORTED, device.str(),
                  join("There is no device ", device.str(), ": CUDA has ", count,
                       " here. Choose one of these, or open the model on the CPU."));
    std::shared_ptr<const OneDevice> made = std::make_shared<const OneDevice>(device.index);
    const std::lock_guard lock(mutex);
    std::shared_ptr<const OneDevice>& there = opened.get()[device.index];
    if (!there || there->is_gone()) there = std::move(made);  // else of the thread that was first
    return there;
  }
};

const CudaDriver driver_of_cuda;
graph::Backend backend{.name = "cuda", .driver = &driver_of_cuda};
const graph::Registration registration(backend);

}  // namespace
}  // namespace neml2_capi::cuda
