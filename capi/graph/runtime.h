// Choice of a runtime and a device for graphs.
#pragma once

#include <optional>

#include "capi/tensor/tensor.h"

namespace neml2_capi::graph {

// Library that a graph calls. `automatic` is the built-in provider if it has all that the graph calls, else
// libtorch. `tensors` is libtorch, whose operators then do a model's own arithmetic too, as on every device but the
// CPU.
enum class Runtime { automatic, builtin, libtorch, tensors };

// Runtime and device that a graph is loaded for.
struct Wanted {
  Runtime runtime = Runtime::automatic;
  std::optional<Device> device = std::nullopt;  // empty: the first device of the graph's type

  Wanted() = default;
  Wanted(Runtime runtime) : runtime(runtime) {}
  Wanted(Runtime runtime, Device device) : runtime(runtime), device(device) {}

  // Tells whether a model may run on its kernels, which take memory of the processor.
  bool takes_kernels() const {
    return device.value_or(Device()).is_host() && (runtime == Runtime::automatic || runtime == Runtime::builtin);
  }
};

}  // namespace neml2_capi::graph
