// A kernel that is called as its package would be, on tensors with one row for each point.
#pragma once

#include <memory>
#include <string>

#include "capi/kernels/host_graph.h"

namespace neml2_capi::kernels {

std::shared_ptr<const aoti::Graph> kernel_graph(const std::string& package, const Kernel& kernel, DType real);

}  // namespace neml2_capi::kernels
