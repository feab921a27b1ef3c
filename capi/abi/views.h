// Views that the fields of a source ask for, around a model that was opened.
#pragma once

#include "capi/abi/handles.h"
#include "capi/abi/sized.h"

namespace neml2_capi::abi {

// Puts them around the model: first its material axes, then the measure of large strain. Throws NEML2_ERROR_ARGUMENT for
// fields that do not go together, and as the views do.
void add_views(ModelObject& model, const neml2_source& source);

}  // namespace neml2_capi::abi
