// Drivers: what compiles the text of a law for a device, and runs it there. A backend offers one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "capi/base/locks.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::graph {

// Memory of a device, which is given back with this.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // What the driver knows it by.
  std::uint64_t handle() const { return handle_; }

 protected:
  explicit DeviceMemory(std::uint64_t handle) : handle_(handle) {}

 private:
  std::uint64_t handle_;
};

// Value that a kernel takes: a number, or the handle of memory, 0 for none. `is_address`: memory that the caller knows by
// an address of the device, which OpenCL tells from handles.
struct DeviceArgument {
  const void* value;
  std::size_t size;
  bool is_address = false;
};

// Kernels of a program: of the text of a law, and of capi/accelerator/kernels.h.
enum class Kernel { law, copy, product, note };
inline constexpr const char* kernel_names[] = {"neml2_law", "neml2_copy", "neml2_product", "neml2_note"};

// Queue of a program's runs on a device. What is put into it is done in order while the caller goes on; memory that is
// named there must stay until wait() returns. The destructor waits for what was put in here. One thread at a time.
//
// Functions throw NEML2_ERROR_MEMORY if the device has no memory left, else NEML2_ERROR_RUNTIME with the driver's words.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  // Throws if somebody has reset the device: memory of allocate_on_host() is then gone, too.
  virtual void require_device() const {}
  virtual std::unique_ptr<DeviceMemory> allocate(std::int64_t bytes) = 0;
  // Memory of the host that the device copies from and to without a detour.
  virtual std::shared_ptr<void> allocate_on_host(std::int64_t bytes) = 0;
  virtual void upload(const DeviceMemory& to, const void* from, std::int64_t bytes) = 0;
  // Copies some bytes, the first of which is `first`.
  virtual void download(void* to, const DeviceMemory& from, std::int64_t first, std::int64_t bytes) = 0;
  // Runs a kernel with so many items, or more.
  virtual void launch(Kernel kernel, std::int64_t items, std::span<const DeviceArgument> arguments) = 0;
  // Hands what was put in to the device.
  virtual void flush() = 0;
  // Waits for what flush() handed over.
  virtual void wait() = 0;
  // Seconds that the device took for the last run of Kernel::law, after wait(): without copies. Not of a caller's
  // queue, which may keep no times.
  virtual double seconds() const = 0;
};

// Program on a device: the kernels of a text. Any number of threads may make queues.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  virtual std::unique_ptr<DeviceQueue> queue() const = 0;
  // Wraps a queue of the caller's: a cl_command_queue, or a cudaStream_t of the device's primary context. Throws
  // NEML2_ERROR_ARGUMENT for one of another device, or that does not keep an order.
  virtual std::unique_ptr<DeviceQueue> queue_over(void* of_caller) const = 0;
  // Whether arguments may be addresses.
  virtual bool takes_addresses() const = 0;
  // Returns the buffer that a caller's buffer is a part of, or itself, and the first byte there.
  virtual std::pair<std::uintptr_t, std::int64_t> origin_of(std::uintptr_t buffer) const { return {buffer, 0}; }
};

class OpenDevice {
 public:
  virtual ~OpenDevice() = default;

  // How many forks there were when it was opened: see locks::forks().
  const std::uint32_t forks = locks::forks();

  // The device in the words of its maker.
  virtual std::string name() const = 0;
  // All that a compiled program depends on, but its text: the device, the driver's version, the compiler's options.
  virtual std::string key() const = 0;
  // Bytes that all memory of this process may take there, and one piece of it.
  virtual std::int64_t memory() const = 0;
  virtual std::int64_t largest_piece() const = 0;
  // Compiles a text. Throws NEML2_ERROR_ARTIFACT with the log of the compiler.
  virtual std::string compile(std::string_view text) const = 0;
  // Loads what compile() returned, perhaps in another process. Throws NEML2_ERROR_RUNTIME if the driver refuses it.
  virtual std::shared_ptr<const DeviceProgram> load(const std::string& binary) const = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;

  virtual bool serves(Device device) const = 0;
  // Name of the text beside an artifact's kernels, "device.cl", and the target that makes it, "opencl".
  virtual const char* text() const = 0;
  virtual const char* target() const = 0;
  // Opens a device, once for the life of the process. Throws NEML2_ERROR_UNSUPPORTED if there is no driver on this
  // machine, or no such device.
  virtual std::shared_ptr<const OpenDevice> open(Device device) const = 0;
};

// Returns the driver of a device. Throws NEML2_ERROR_UNSUPPORTED if no backend has one.
const Driver& driver_of(Device device);

}  // namespace neml2_capi::graph
