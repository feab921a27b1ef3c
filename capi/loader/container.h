// A container of the AOTI runtime: the code of a package, with one set of constants.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "capi/loader/image.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti {

// What the code of a package calls, as far as a container is concerned: whose handles it has.
class Handling {
 public:
  virtual ~Handling() = default;

  // The tensor of a handle, which stays the package's.
  virtual Tensor tensor_of(void* handle) const = 0;
  // A handle over the memory of a tensor that outlives it, and its end.
  virtual void* lend(const Tensor& tensor) const = 0;
  virtual void take_back(void* lent) const noexcept = 0;
  // Call `destroy`, and then delete those of `handles`, the package's own of what was lent to it, that it left behind.
  // Null ones were not lent.
  virtual void destroy(const std::function<void()>& destroy, const std::vector<void*>& handles,
                       const std::vector<void*>& lent) const = 0;
  // Why the last call of this thread failed, of a run with this `proxy` or of none; empty where nobody said.
  virtual std::string reason(void* proxy) const = 0;
};

// A constant of a package. The compiler keeps what it can as a number in the code instead.
struct PackagedConstant {
  const char* name;       // as in the module that was compiled: "layers.0.weight"
  const char* used_name;  // as in the package, whose code has both texts
  Tensor value;
};

class Container {
 public:
  // With the constants that were compiled in. `package` is for messages; code that fails is NEML2_ERROR_RUNTIME.
  // `kernels` is the folder of the device's code, or null.
  Container(Image& image, const Handling& handling, std::string package, Device device, const char* kernels);
  // On the CPU, with these, all that there are: their memory is used, and must not change.
  Container(Image& image, const Handling& handling, std::string package, std::vector<PackagedConstant> constants);
  ~Container();
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  std::size_t num_inputs() const;
  std::size_t num_outputs() const;

  // In the order of the package. Those that were compiled in live as long as the container.
  std::vector<PackagedConstant> constants() const;
  // Those that it was made with.
  const std::vector<PackagedConstant>& replaced() const { return replaced_; }

  // Whether a run has ended well, and with it all that happens once.
  bool has_run() const { return has_run_.load(std::memory_order_acquire); }

  // Run, on any thread. The inputs are taken over; after an error some may still be there. `alone`: no other run of the
  // image at the same time. `stream` is the device's, null on the CPU.
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
  // Used in place of the constants that were compiled in; and handles of the same memory, lent to the package: it makes
  // a handle of its own of each, which it may forget to delete.
  std::vector<PackagedConstant> replaced_;
  std::vector<void*> lent_;
  mutable std::atomic<bool> has_run_ = false;
};

}  // namespace neml2_capi::aoti
