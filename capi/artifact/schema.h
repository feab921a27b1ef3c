// Readers of the schemas of the metadata, into the one form that the rest of the library knows.
#pragma once

#include "capi/artifact/field.h"
#include "capi/artifact/metadata.h"

namespace neml2_capi::artifact {

// Each reads all but the leaf and its element type. Throws NEML2_ERROR_ARTIFACT and NEML2_ERROR_UNSUPPORTED.
Metadata read_schema14(const Field& document);
Metadata read_schema12(const Field& document);
Metadata read_schema7(const Field& document);
Metadata read_schema3(const Field& document);
Metadata read_schema2(const Field& document);

}  // namespace neml2_capi::artifact
