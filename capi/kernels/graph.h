// Runs kernels through tensors, instead of packages, if an artifact has none: slower than lanes, but complete. What
// lanes cannot do yet runs on them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "capi/graph/graph.h"
#include "capi/kernels/folder.h"

namespace neml2_capi::kernels {

// Returns the kernel that stands for a package, as a graph. Throws as Folder::find().
std::shared_ptr<graph::Graph> kernel_graph(std::shared_ptr<const Folder> folder, const std::string& package);

// Returns a graph that takes what a kernel of a Jacobian returns, the blocks and then `residuals` right-hand sides, to
// return the solutions; null if a block is no matrix. Throws as Folder::find().
std::shared_ptr<graph::Graph> solver_graph(std::shared_ptr<const Folder> folder, const std::string& jacobian,
                                           std::size_t residuals);

}  // namespace neml2_capi::kernels
