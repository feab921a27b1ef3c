// Loading of a package, which is first checked for the runtime that it will call.
#pragma once

#include <memory>

#include "capi/graph/backend.h"

namespace neml2_capi::aoti {

using graph::Graph;
using graph::Runtime;
using graph::Wanted;

// Loads a .pt2 file. Throws Error: NEML2_ERROR_FILE, _ARTIFACT, _UNSUPPORTED, with a line for each failed check.
std::shared_ptr<Graph> load_graph(const graph::Source& source, const Wanted& wanted = {});

// Makes all checks of load_graph() that need no mapped code, and throws its errors. Returns the runtime that
// load_graph() would take.
Runtime check_package(const graph::Source& source, const Wanted& wanted = {});

}  // namespace neml2_capi::aoti
