// What runs packages, and where.
#pragma once

#include <optional>
#include <string>

#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti {

// What a package calls: the built-in provider, or libtorch. `automatic`: the built-in provider where it has all that the
// package calls, else libtorch.
// `tensors`: libtorch, and a model's own arithmetic by its operators, too; so on every device but the CPU.
enum class Runtime { automatic, builtin, libtorch, tensors };

// What a package is loaded for.
struct Wanted {
  Runtime runtime = Runtime::automatic;
  std::optional<Device> device = std::nullopt;  // empty: that of the package, the first of its type

  Wanted() = default;
  Wanted(Runtime runtime) : runtime(runtime) {}
  Wanted(Runtime runtime, Device device) : runtime(runtime), device(device) {}
};

// The device of a text: "cpu", "cuda", "cuda:1". Throws NEML2_ERROR_UNSUPPORTED.
Device device_named(const std::string& name);

}  // namespace neml2_capi::aoti
