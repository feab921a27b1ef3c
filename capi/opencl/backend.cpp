// Devices of OpenCL: a backend.
#include "capi/graph/backend.h"

#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "capi/base/locks.h"
#include "capi/opencl/library.h"
#include "capi/tensor/memory.h"

namespace neml2_capi::opencl {
namespace {

// An object of OpenCL, and the function that gives it back.
class Owned {
 public:
  Owned() = default;
  Owned(Object object, Number (*release)(Object)) : object_(object), release_(release) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (object_) release_(object_);
  }

  Object get() const { return object_; }

 private:
  Object object_ = nullptr;
  Number (*release_)(Object) = nullptr;
};

template <class Value>
Value number(Object device, Count what) {
  Value value{};
  require(functions().clGetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

// Returns a text of an object, which `get` writes to a buffer.
template <class Get>
std::string text(Get&& get, const char* what) {
  Size size = 0;
  require(get(0, nullptr, &size), what);
  std::string value(size, '\0');
  require(get(size, value.data(), nullptr), what);
  while (!value.empty() && value.back() == '\0') value.pop_back();
  return value;
}

class Memory final : public graph::DeviceMemory {
 public:
  explicit Memory(Owned memory)
      : DeviceMemory(reinterpret_cast<std::uintptr_t>(memory.get())), memory_(std::move(memory)) {}

 private:
  Owned memory_;
};

Object object_of(const graph::DeviceMemory& memory) {
  return reinterpret_cast<Object>(static_cast<std::uintptr_t>(memory.handle()));
}

using Kernels = std::array<Owned, std::size(graph::kernel_names)>;

class Queue final : public graph::DeviceQueue {
 public:
  // Kernels are the queue's own: their arguments are set, and then they are launched.
  Queue(std::shared_ptr<const void> owner, Object context, Owned queue, Kernels kernels)
      : owner_(std::move(owner)), context_(context), kernels_(std::move(kernels)), queue_(std::move(queue)) {}
  ~Queue() override { functions().clFinish(queue_.get()); }

  std::unique_ptr<graph::DeviceMemory> allocate(std::int64_t bytes) override {
    Number status = 0;
    Owned made(functions().clCreateBuffer(context_, read_write, static_cast<Size>(bytes), nullptr, &status),
               functions().clReleaseMemObject);
    require(status, "clCreateBuffer");
    return std::make_unique<Memory>(std::move(made));
  }
  std::shared_ptr<void> allocate_on_host(std::int64_t bytes) override {
    const auto size = static_cast<std::size_t>(bytes);
    return {memory::allocate(size), [size](void* block) { memory::release(block, size); }};
  }

  void upload(const graph::DeviceMemory& to, const void* from, std::int64_t bytes) override {
    if (bytes == 0) return;
    require(functions().clEnqueueWriteBuffer(queue_.get(), object_of(to), 0, 0, static_cast<Size>(bytes), from, 0,
                                             nullptr, nullptr),
            "clEnqueueWriteBuffer");
  }
  void download(void* to, const graph::DeviceMemory& from, std::int64_t first, std::int64_t bytes) override {
    if (bytes == 0) return;
    require(functions().clEnqueueReadBuffer(queue_.get(), object_of(from), 0, static_cast<Size>(first),
                                            static_cast<Size>(bytes), to, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
  }
  // A whole number of groups: the kernel leaves out what is beyond the items.
  void launch(graph::Kernel which, std::int64_t items, std::span<const graph::DeviceArgument> arguments) override {
    constexpr Size group = 64;
    Object kernel = kernels_[static_cast<std::size_t>(which)].get();
    for (std::size_t i = 0; i < arguments.size(); ++i) set(kernel, static_cast<Count>(i), arguments[i]);
    const Size all = (static_cast<Size>(items) + group - 1) / group * group;
    Object event = nullptr;
    require(functions().clEnqueueNDRangeKernel(queue_.get(), kernel, 1, nullptr, &all, &group, 0, nullptr, &event),
            "clEnqueueNDRangeKernel");
    Owned launched(event, functions().clReleaseEvent);
    if (which == graph::Kernel::law) launched_ = std::move(launched);
  }
  void flush() override {
    Object event = nullptr;
    require(functions().clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
    flushed_ = Owned(event, functions().clReleaseEvent);
    require(functions().clFlush(queue_.get()), "clFlush");
  }
  void wait() override {
    Object event = flushed_.get();
    if (!event) return;
    require_done(functions().clWaitForEvents(1, &event));
    Number status = 0;
    if (!launched_.get()) return;
    require(functions().clGetEventInfo(launched_.get(), event_status, sizeof status, &status, nullptr),
            "clGetEventInfo");
    require_done(status);
  }
  double seconds() const override { return 1e-9 * static_cast<double>(time_of(event_end) - time_of(event_start)); }

 private:
  static void set(Object kernel, Count index, const graph::DeviceArgument& argument) {
    if (argument.is_address) {
      const void* address = *static_cast<void* const*>(argument.value);
      require(functions().clSetKernelArgSVMPointer(kernel, index, address), "clSetKernelArgSVMPointer");
    } else {
      require(functions().clSetKernelArg(kernel, index, argument.size, argument.value), "clSetKernelArg");
    }
  }
  std::uint64_t time_of(Count what) const {
    std::uint64_t nanoseconds = 0;
    require(functions().clGetEventProfilingInfo(launched_.get(), what, sizeof nanoseconds, &nanoseconds, nullptr),
            "clGetEventProfilingInfo");
    return nanoseconds;
  }

  std::shared_ptr<const void> owner_;  // of the context
  Object context_;
  Kernels kernels_;
  Owned launched_, flushed_, queue_;
};

template <class Value>
Value number_of_queue(Object queue, Count what) {
  Value value{};
  require(functions().clGetCommandQueueInfo(queue, what, sizeof value, &value, nullptr), "clGetCommandQueueInfo");
  return value;
}

std::string binary_of(Object program) {
  Size size = 0;
  require(functions().clGetProgramInfo(program, program_binary_sizes, sizeof size, &size, nullptr), "clGetProgramInfo");
  std::string binary(size, '\0');
  char* to = binary.data();
  require(functions().clGetProgramInfo(program, program_binaries, sizeof to, &to, nullptr), "clGetProgramInfo");
  return binary;
}

Owned program_in(Object context, Object device, const std::string& binary, const char* options) {
  Number status = 0, of_device = 0;
  const Size length = binary.size();
  const auto* first = reinterpret_cast<const unsigned char*>(binary.data());
  Owned program(functions().clCreateProgramWithBinary(context, 1, &device, &length, &first, &of_device, &status),
                functions().clReleaseProgram);
  require(status, "clCreateProgramWithBinary");
  require(of_device, "clCreateProgramWithBinary");
  require(functions().clBuildProgram(program.get(), 1, &device, options, nullptr, nullptr), "clBuildProgram");
  return program;
}

class Program final : public graph::DeviceProgram, public std::enable_shared_from_this<Program> {
 public:
  Program(Object device, Object context, Owned program, const char* options)
      : device_(device), context_(context), options_(options), program_(std::move(program)) {
    kernels(program_.get());  // they must be there
  }

  std::unique_ptr<graph::DeviceQueue> queue() const override {
    Number status = 0;
    Owned queue(functions().clCreateCommandQueue(context_, device_, with_times, &status),
                functions().clReleaseCommandQueue);
    require(status, "clCreateCommandQueue");
    return std::make_unique<Queue>(shared_from_this(), context_, std::move(queue), kernels(program_.get()));
  }
  std::unique_ptr<graph::DeviceQueue> queue_over(void* of_caller) const override {
    const auto refuse = [](const char* problem) {
      throw Error(NEML2_ERROR_ARGUMENT, "queue",
                  join("The queue ", problem,
                       ". Give the cl_command_queue of the model's device, one that does its work in order."));
    };
    if (!of_caller) refuse("is NULL");
    if (number_of_queue<Object>(of_caller, queue_device) != device_) refuse("is of another device than the model");
    if ((number_of_queue<Flags>(of_caller, queue_properties) & out_of_order) != 0) refuse("is out of order");
    require(functions().clRetainCommandQueue(of_caller), "clRetainCommandQueue");
    Owned queue(of_caller, functions().clReleaseCommandQueue);
    const Object context = number_of_queue<Object>(of_caller, queue_context);
    return std::make_unique<Queue>(shared_from_this(), context, std::move(queue), kernels(program_of(context)));
  }
  bool takes_addresses() const override {
    Flags how = 0;  // a device of OpenCL 1.2 does not know the question
    functions().clGetDeviceInfo(device_, device_shared_memory, sizeof how, &how, nullptr);
    return how != 0 && functions().clSetKernelArgSVMPointer;
  }
  std::pair<std::uintptr_t, std::int64_t> origin_of(std::uintptr_t buffer) const override {
    const auto of = reinterpret_cast<Object>(buffer);
    Object whole = nullptr;
    Size first = 0;
    require(functions().clGetMemObjectInfo(of, memory_whole, sizeof(Object), &whole, nullptr), "clGetMemObjectInfo");
    require(functions().clGetMemObjectInfo(of, memory_first, sizeof(Size), &first, nullptr), "clGetMemObjectInfo");
    return {whole ? reinterpret_cast<std::uintptr_t>(whole) : buffer, static_cast<std::int64_t>(first)};
  }

 private:
  static Kernels kernels(Object program) {
    Kernels made;
    for (std::size_t i = 0; i < made.size(); ++i) {
      Number status = 0;
      made[i] =
          Owned(functions().clCreateKernel(program, graph::kernel_names[i], &status), functions().clReleaseKernel);
      require(status, join("clCreateKernel of ", graph::kernel_names[i]).c_str());
    }
    return made;
  }
  // Returns the program in a context, which lives as long as this.
  Object program_of(Object context) const {
    if (context == context_) return program_.get();
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = elsewhere_.try_emplace(context);
    if (is_new) try {
        found->second = program_in(context, device_, binary_of(program_.get()), options_);
      } catch (...) {
        elsewhere_.erase(found);
        throw;
      }
    return found->second.get();
  }

  Object device_, context_;
  const char* options_;
  Owned program_;
  mutable locks::Mutex mutex_;  // guards the programs in contexts of callers
  mutable std::map<Object, Owned> elsewhere_;
};

class OneDevice final : public graph::OpenDevice {
 public:
  explicit OneDevice(Object device) : device_(device) {
    Number status = 0;
    context_ = Owned(functions().clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status),
                     functions().clReleaseContext);
    require(status, "clCreateContext");
  }

  std::string name() const override { return about(device_name); }
  std::string key() const override {
    return join("opencl\n", about(device_name), "\n", about(device_version), "\n", about(driver_version), "\n",
                options());
  }
  std::int64_t memory() const override { return bytes(device_memory); }
  std::int64_t largest_piece() const override { return bytes(device_largest_piece); }

  std::string compile(std::string_view text) const override {
    if (number<Flags>(device_, device_double_config) == 0)
      throw Error(NEML2_ERROR_UNSUPPORTED, "opencl", join(name(), " has no numbers of double precision."));
    Number status = 0;
    const char* first = text.data();
    const Size length = text.size();
    const Owned program(functions().clCreateProgramWithSource(context_.get(), 1, &first, &length, &status),
                        functions().clReleaseProgram);
    require(status, "clCreateProgramWithSource");
    if (functions().clBuildProgram(program.get(), 1, &device_, options(), nullptr, nullptr) < 0)
      throw Error(NEML2_ERROR_ARTIFACT, "device.cl",
                  join("The kernels do not compile for ", name(), ": ", log_of(program.get()),
                       "\nWrite them again: neml2-capi build-kernels ARTIFACT --target opencl"));
    return binary_of(program.get());
  }

  std::shared_ptr<const graph::DeviceProgram> load(const std::string& binary) const override {
    Owned program = program_in(context_.get(), device_, binary, options());
    return std::make_shared<const Program>(device_, context_.get(), std::move(program), options());
  }

 private:
  // Division and roots of single precision are rounded correctly if that is asked for, and in double precision always.
  const char* options() const {
    const bool rounds = (number<Flags>(device_, device_single_config) & rounds_single_division) != 0;
    return rounds ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2";
  }

  std::string about(Count what) const {
    return text(
        [&](Size size, void* to, Size* needed) { return functions().clGetDeviceInfo(device_, what, size, to, needed); },
        "clGetDeviceInfo");
  }
  std::int64_t bytes(Count what) const { return static_cast<std::int64_t>(number<std::uint64_t>(device_, what)); }
  std::string log_of(Object program) const {
    return text(
        [&](Size size, void* to, Size* needed) {
          return functions().clGetProgramBuildInfo(program, device_, build_log, size, to, needed);
        },
        "clGetProgramBuildInfo");
  }

  Object device_;
  Owned context_;
};

// Lists the devices of all platforms, in the order of the loader.
std::vector<Object> devices() {
  std::vector<Object> all;
  Count platforms = 0;
  if (functions().clGetPlatformIDs(0, nullptr, &platforms) < 0) return all;  // there are none
  std::vector<Object> listed(platforms);
  require(functions().clGetPlatformIDs(platforms, listed.data(), nullptr), "clGetPlatformIDs");
  for (Object platform : listed) {
    Count count = 0;
    if (functions().clGetDeviceIDs(platform, all_devices, 0, nullptr, &count) < 0) continue;
    const std::size_t before = all.size();
    all.resize(before + count);
    require(functions().clGetDeviceIDs(platform, all_devices, count, all.data() + before, nullptr), "clGetDeviceIDs");
  }
  return all;
}

constinit locks::Mutex mutex;
constinit locks::Lazy<std::map<int, std::shared_ptr<const graph::OpenDevice>>> opened;  // never closed

class OpenClDriver final : public graph::Driver {
 public:
  bool serves(Device device) const override { return device.type == Device::Type::opencl; }
  const char* text() const override { return "device.cl"; }
  const char* target() const override { return "opencl"; }
  std::shared_ptr<const graph::OpenDevice> open(Device device) const override {
    {
      const std::lock_guard lock(mutex);
      if (const auto found = opened.get().find(device.index); found != opened.get().end()) return found->second;
    }
    const std::vector<Object> all = devices();
    const auto index = static_cast<std::size_t>(device.index);
    if (index >= all.size())
      throw Error(NEML2_ERROR_UNSUPPORTED, device.str(),
                  join("There is no device ", device.str(), ": OpenCL has ", all.size(),
                       " here. Install the driver of one (clinfo lists them), or open the model on the CPU."));
    auto made = std::make_shared<const OneDevice>(all[index]);
    const std::lock_guard lock(mutex);
    return opened.get().try_emplace(device.index, std::move(made)).first->second;  // of the thread that was first
  }
};

const OpenClDriver driver;
graph::Backend backend{.name = "opencl", .driver = &driver};
const graph::Registration registration(backend);

}  // namespace
}  // namespace neml2_capi::opencl
