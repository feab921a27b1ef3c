// Hypotheses of elements: which components of the strain a host gives, and what becomes of the others.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace neml2_capi::model {

inline constexpr std::int64_t symmetric_size = 6;

// Components of a symmetric tensor by their positions in Mandel notation: xx, yy, zz, yz, xz, xy.
using Components = std::vector<std::int64_t>;

struct Hypothesis {
  const char* name;
  Components given;  // of the strain, and of the stress that goes with them
  Components free;   // the strain is an unknown, and the stress vanishes
  Components zero;   // the strain is zero
};

// Returns a hypothesis by its number, NEML2_PLANE_STRAIN and so on. Throws NEML2_ERROR_ARGUMENT for an unknown one.
Hypothesis hypothesis_of(std::int32_t number);

}  // namespace neml2_capi::model
