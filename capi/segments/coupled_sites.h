// Derivatives are compiled for one change at all sites of an input. That is the derivative at each site if a site of the
// output depends on its own site of the input only: this is found out by runs of the graph.
#pragma once

#include <vector>

#include "capi/segments/graph_call.h"
#include "capi/segments/placed_pair.h"

namespace neml2_capi::model {

// Marks the derivatives of a graph as lumped if a site of the output depends on other sites of the input, or if no run
// could tell.
void find_coupled_sites(const GraphCall& value, std::vector<PlacedPair>& pairs);

}  // namespace neml2_capi::model
