// The memory in which one thread evaluates blocks, and the way through it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "capi/kernels/condenser.h"
#include "capi/kernels/layout.h"

namespace neml2_capi::kernels {

class Workspace {
 public:
  // Throws NEML2_ERROR_UNSUPPORTED if something has no kernel, or is not there in lanes. With a condensation, which may be null,
  // arrays are of its caller.
  Workspace(const Folder& folder, const artifact::Metadata& metadata, const Boundary& boundary, Asked asked,
            const Condensation* condensation);

  // Evaluates points [begin, end) of the arrays.
  void run(const model::Bindings& arrays, const newton::Settings& rules, std::int64_t begin, std::int64_t end,
           model::Counts& counts);

 private:
  const Functions& functions_;
  Layout layout_;
  std::vector<Bound> inputs_, outputs_, iterates_, guesses_;
  std::vector<std::int64_t> input_offsets_, output_offsets_;  // in the arrays of the caller; without directions
  std::vector<std::pair<std::size_t, std::size_t>> steps_;
  std::vector<Increment> increments_;
  std::optional<Chains> chains_;
  std::optional<Condenser> condenser_;
  RowsCall rows_;  // if it is all
  const bool has_sites_in_lanes_;
  char* scratch_ = nullptr;
};

}  // namespace neml2_capi::kernels
