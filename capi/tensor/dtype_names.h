// Element types by their names.
#pragma once

#include <optional>
#include <string_view>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// Returns nullopt for an unknown name.
inline std::optional<DType> dtype_named(std::string_view name) {
  for (std::int32_t code = NEML2_FLOAT64; is_dtype(code); ++code)
    if (name == name_of(static_cast<DType>(code))) return static_cast<DType>(code);
  return std::nullopt;
}

}  // namespace neml2_capi
