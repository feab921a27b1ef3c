// The strain and the stress of a law, by what their variables are called.
#pragma once

#include <cstddef>
#include <string_view>

#include "capi/model/model.h"

namespace neml2_capi::model {

struct TensorPair {
  std::size_t strain, stress;  // positions of an input and an output
};

// Tells what becomes of a variable whose name says that it is a rate or an increment.
enum class Changes { taken, refused };

// Finds them if their names are empty; with Changes::refused as a mapping of a plug-in does. `purpose` begins the message:
// "The strain measure logarithmic". Throws NEML2_ERROR_NAME or NEML2_ERROR_SHAPE if there are none, or several.
TensorPair tensor_pair_of(const Model& law, std::string_view purpose, std::string_view strain, std::string_view stress,
                          Changes changes);

// Returns the position of a derivative among those with respect to variables of a kind; -1 if it was not compiled.
std::int64_t derivative_of(const Model& law, Kind kind, std::size_t output, std::size_t variable);

}  // namespace neml2_capi::model
