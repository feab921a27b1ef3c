// A graph that is called with no rows.
#pragma once

#include <optional>

#include "capi/graph/graph.h"

namespace neml2_capi::graph {

// Returns what a graph returns for inputs of which an axis of open size is empty; nullopt if none is. No such batch
// enters a graph: it is run on two rows and on three of other values, which tells the axes of the outputs that are rows.
// Throws NEML2_ERROR_SHAPE for an output that depends on rows and has no axis of them.
std::optional<Vector<Tensor>> run_without_rows(const Graph& graph, const Vector<Tensor>& inputs);

}  // namespace neml2_capi::graph
