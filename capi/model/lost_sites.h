// Sub-batch sites that neml2-compile took for points.
#pragma once

#include "capi/artifact/metadata.h"
#include "capi/segments/segment.h"

namespace neml2_capi::model {

// Throws NEML2_ERROR_ARTIFACT if a forward segment makes a value of (n, n) sites of one with (n). neml2-compile 3.1.0
// forgets which axes of a segment's inputs are sites, and the product of such an input with a constant of each site is
// an outer product then. If the metadata lists the sites of the output, as neml2-capi compile writes it, they are
// meant.
void refuse_lost_sites(const artifact::Metadata& metadata, const Scope& scope);

}  // namespace neml2_capi::model
