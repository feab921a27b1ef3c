// A container of the AOTI runtime: the code of a package, with one set of constants.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "capi/aoti/builtin/image.h"
#include "capi/tensor/handles.h"

namespace neml2_capi::aoti::builtin {

// A constant of a package. The compiler keeps what it can as a number in the code instead.
struct Constant {
  const char* name;       // as in the module that was compiled: "layers.0.weight"
  const char* used_name;  // as in the package, whose code has both texts
  Tensor value;
};

class Container {
 public:
  // With the constants that were compiled in. `package` is for messages; code that fails is NEML2_ERROR_RUNTIME.
  Container(Image& image, std::string package);
  // With these, all that there are: their memory is used, and must not change.
  Container(Image& image, std::string package, std::vector<Constant> constants);
  ~Container();
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  std::size_t num_inputs() const;
  std::size_t num_outputs() const;

  // In the order of the package. Those that were compiled in live as long as the container.
  std::vector<Constant> constants() const;

  // Run, on any thread. The inputs are taken over; after an error some may still be there. `alone`: no other run of the
  // image at the same time.
  void run(Handles& inputs, Handles& outputs, RunContext& context, bool alone) const;

 private:
  const EntryPoints& entry() const { return image_.entry(); }
  template <class Call>
  void call(Call&& call) const;
  std::vector<Tensor*> handles() const;
  [[noreturn]] void report_failure(std::string reason) const;

  Image& image_;
  std::string package_;
  EntryPoints::Container container_ = nullptr;
  // Used in place of the constants that were compiled in; and the same memory, lent to the package: it has a handle of
  // each, which it may forget to delete.
  std::vector<Constant> replaced_;
  std::vector<Tensor> lent_;
  mutable std::atomic<bool> has_run_ = false;
};

}  // namespace neml2_capi::aoti::builtin
