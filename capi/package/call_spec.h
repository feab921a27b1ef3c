// The names that the author of a package gave to its inputs and outputs.
#pragma once

#include <string>

#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Under this key of a package's metadata, neml2_capi.export writes what torch forgets, as JSON in a string:
//   {"inputs": ["strain", "temperature"], "output_dtypes": ["float64"]}
inline constexpr const char* exporter_notes = "NEML2_CAPI_EXPORT";

// Replace the names that torch made up ("arg0_1", "output0") where others are known: from the exporter's notes, else
// from the call spec, whose keywords and keys of dictionaries stand in it: "strain", "parts.1". Element types of outputs
// that the source does not tell come from the notes as well. What cannot be read is left as it is.
void name_tensors(Signature& signature, const std::string& notes);

}  // namespace neml2_capi::aoti
