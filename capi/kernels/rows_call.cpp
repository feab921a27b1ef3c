#include "capi/kernels/rows_call.h"

#include <algorithm>

#include "capi/kernels/memory.h"

namespace neml2_capi::kernels {
namespace {

// Finds the array of each place; false if one is none of them, or only a part.
bool find(std::vector<std::size_t>& found, const At* places, const neml2_kernel_array* arrays, std::int32_t count,
          const std::vector<Bound>& bounds) {
  for (std::int32_t i = 0; i < count; ++i) {
    const auto it = std::ranges::find(bounds, places[i], &Bound::at);
    if (it == bounds.end() || it->apart != 1 || it->components != arrays[i].components) return false;
    found.push_back(static_cast<std::size_t>(it - bounds.begin()));
  }
  return found.size() == bounds.size();
}

}  // namespace

RowsCall::RowsCall(const Run& run, const std::vector<At>& places, const std::vector<Bound>& inputs,
                   const std::vector<Bound>& outputs) {
  const neml2_kernel& kernel = *run.kernel;
  const auto run_rows = newer(kernel, &neml2_kernel::run_rows);
  if (!run_rows) return;
  if (kernel.input_count > most_on_rows || kernel.output_count > most_on_rows) return;
  if (!find(inputs_, places.data(), kernel.inputs, kernel.input_count, inputs) ||
      !find(outputs_, places.data() + kernel.input_count, kernel.outputs, kernel.output_count, outputs))
    return;
  run_ = run_rows;
  given_.resize(inputs_.size());
  made_.resize(outputs_.size());
}

void RowsCall::add_to(Walk& walk) {
  if (!run_) return;
  for (std::size_t i = 0; i < inputs_.size(); ++i) given_[i] = walk.inputs.items[inputs_[i]].array;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Bound& output = walk.outputs.items[outputs_[i]];
    if (!output.array.data || output.array.stride != output.components) return;
    made_[i] = output.array;
  }
  walk.rows = {run_, list(given_), list(made_)};
}

}  // namespace neml2_capi::kernels
