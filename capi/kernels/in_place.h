// Graphs of an artifact that was compiled without packages: a kernel, or a linear solve between two of them, called as
// the package would be. So a model has everything without packages, and lanes remain its fast route.
#pragma once

#include <memory>
#include <string>

#include "capi/artifact/metadata.h"
#include "capi/kernels/folder.h"
#include "capi/package/graph.h"

namespace neml2_capi::kernels {

// The folder need not outlive the graph. Throws NEML2_ERROR_UNSUPPORTED with the segment and the reason where there is no
// kernel, and nothing else can stand in its place.
std::shared_ptr<const aoti::Graph> graph_in_place_of(const std::string& package, const Folder& folder,
                                                     const artifact::Metadata& metadata);

}  // namespace neml2_capi::kernels
