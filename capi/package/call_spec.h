// Names that the author of a package gave to its inputs and outputs.
#pragma once

#include <string>

#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Key of a package's metadata under which neml2_capi.export writes what torch forgets, as JSON in a string:
//   {"inputs": ["strain", "temperature"], "output_dtypes": ["float64"]}
inline constexpr const char* exporter_notes = "NEML2_CAPI_EXPORT";

// Replaces the names that torch made up ("arg0_1", "output0") by names from the exporter's notes, else by the keywords
// and keys of dictionaries in the call spec: "strain", "parts.1". Element types of outputs that the source does not
// tell come from the notes, too. Notes that cannot be read change nothing.
void name_tensors(Signature& signature, const std::string& notes);

}  // namespace neml2_capi::aoti
