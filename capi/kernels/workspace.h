// The memory in which one thread evaluates blocks, and the way through it.
#pragma once

#include <cstdint>
#include <memory>

#include "capi/artifact/metadata.h"
#include "capi/kernels/block.h"
#include "capi/kernels/folder.h"
#include "capi/kernels/request.h"

namespace neml2_capi::kernels {

class Workspace {
 public:
  virtual ~Workspace() = default;
  virtual void run(const Request& request, std::int64_t begin, std::int64_t end, model::Counts& counts) = 0;
};

// Throws NEML2_ERROR_UNSUPPORTED if something has no kernel, or is not there in lanes.
std::unique_ptr<Workspace> make_workspace(const Folder& folder, const artifact::Metadata& metadata,
                                          const Boundary& boundary, Asked asked);

}  // namespace neml2_capi::kernels
