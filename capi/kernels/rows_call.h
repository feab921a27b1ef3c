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
  // Finds the caller's array for each place of the kernel's arrays in scratch, inputs before outputs. It is empty if the kernel
  // has no run_rows(), or if the caller has other arrays, too.
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
