// The memory in which one thread evaluates blocks, and the way through it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/kernels/block.h"
#include "capi/kernels/folder.h"
#include "capi/newton/newton.h"
#include "capi/values/derivative.h"
#include "capi/values/points.h"

namespace neml2_capi::kernels {

// What a model shows at its boundary, in the order of its metadata.
struct Boundary {
  const std::vector<model::Variable>& inputs;
  const std::vector<model::Variable>& outputs;
  const std::vector<model::Variable>& parameters;
  const std::vector<model::Variable>& unknowns;
  const std::vector<model::Derivative>& derivatives;
};

// The arrays of an evaluation, each in the order of the boundary. Those that are not bound are null.
struct Request {
  std::span<const model::Points> inputs, parameters, outputs;
  std::span<const model::Points> iterates;  // by unknown: written where a point failed; empty: not wanted
  std::span<const model::Points> blocks;
  std::span<const model::Points, 5> report;
  newton::Settings rules;
  bool mark_failed = false;
  bool input_first = false;
};

class Workspace {
 public:
  virtual ~Workspace() = default;
  virtual void run(const Request& request, std::int64_t begin, std::int64_t end, Counts& counts) = 0;
};

// Throws NEML2_ERROR_UNSUPPORTED where something has no kernel, or is not there in lanes.
std::unique_ptr<Workspace> make_workspace(const Folder& folder, const artifact::Metadata& metadata,
                                          const Boundary& boundary, bool derivatives);

}  // namespace neml2_capi::kernels
