// Container of the AOTI runtime: the code of a package, with one set of constants.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "capi/loader/image.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti {

// Handles of the runtime that the code of a package calls: the provider's or libtorch's.
class Handling {
 public:
  virtual ~Handling() = default;

  // Returns the tensor of a handle, which stays the package's.
  virtual Tensor tensor_of(void* handle) const = 0;
  // Makes a handle over the memory of a tensor that outlives it, and deletes it.
  virtual void* lend(const Tensor& tensor) const = 0;
  virtual void take_back(void* lent) const noexcept = 0;
  // Calls `destroy`, then deletes the `handles` that the package left behind: its own handles of the tensors in `lent`,
  // null if it has none. Takes no memory.
  virtual void destroy(const std::function<void()>& destroy, std::vector<void*> handles,
                       const std::vector<void*>& lent) const = 0;
  // Returns why the last call of this thread failed, in a run with this `proxy` or in none; empty if unknown. Throws
  // std::bad_alloc if memory lacked.
  virtual std::string reason(void* proxy) const = 0;
};

// Constant of a package. The compiler turns others into numbers in the code.
struct PackagedConstant {
  const char* name;       // name in the module that was compiled: "layers.0.weight"
  const char* used_name;  // name in the package, whose code has both texts
  Tensor value;
};

class Container {
 public:
  // Has the compiled-in constants. `package` is for messages. `kernels` is the folder of the device's code, or null.
  // Throws NEML2_ERROR_RUNTIME if the code fails, std::bad_alloc if it lacks memory.
  Container(Image& image, const Handling& handling, std::string package, Device device, const char* kernels);
  // Has these constants, all that the package has, on the CPU. Their memory is used, and must not change.
  Container(Image& image, const Handling& handling, std::string package, std::vector<PackagedConstant> constants);
  ~Container();
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  std::size_t num_inputs() const;
  std::size_t num_outputs() const;

  // Returns the constants in the order of the package. Compiled-in ones live as long as the container.
  std::vector<PackagedConstant> constants() const;
  // Returns the constants that the container was made with.
  const std::vector<PackagedConstant>& replaced() const { return replaced_; }

  // Tells whether a run has succeeded, which folds constants once.
  bool has_run() const { return has_run_.load(std::memory_order_acquire); }

  // Runs the package, on any thread. The package takes the inputs over; after an error some may still be there. `alone`
  // keeps other runs of the image away. `stream` is the device's, null on the CPU.
  void run(void** inputs, std::size_t num_inputs, void** outputs, std::size_t num_outputs, void* proxy, bool alone,
           void* stream = nullptr) const;

 private:
  const EntryPoints& entry() const { return image_.entry(); }
  template <class Call>
  void call(Call&& call, void* proxy = nullptr) const;
  std::vector<void*> handles() const;
  void use_replaced();
  void destroy() noexcept;
  [[noreturn]] void report_failure(std::string reason) const;

  Image& image_;
  const Handling& handling_;
  std::string package_;
  EntryPoints::Container container_ = nullptr;
  // Replacements of the compiled-in constants, and handles of the same memory, lent to the package: it makes a handle
  // of its own of each, which it may forget to delete.
  std::vector<PackagedConstant> replaced_;
  std::vector<void*> lent_;
  std::vector<void*> own_;  // those handles, null if the package kept a compiled-in constant
  mutable std::atomic<bool> has_run_ = false;
};

}  // namespace neml2_capi::aoti
