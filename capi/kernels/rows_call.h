// One kernel as a whole model, which reads and writes rows of the caller's arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capi/kernels/block.h"

namespace neml2_capi::kernels {

class RowsCall {
 public:
  RowsCall() = default;
  // Of a kernel whose arrays have these places in scratch, inputs before outputs; nothing if it has no such function, or if these
  // are not all that the caller has.
  RowsCall(const Run& run, const std::vector<At>& places, const std::vector<Bound>& inputs,
           const std::vector<Bound>& outputs);

  // Adds itself to a walk if nothing stands between the points of each output.
  void add_to(Walk& walk);

 private:
  decltype(neml2_kernel::run_rows) run_ = nullptr;
  std::vector<std::size_t> inputs_, outputs_;  // of the walk, in the order of the kernel
  std::vector<model::Points> given_, made_;
};

}  // namespace neml2_capi::kernels
