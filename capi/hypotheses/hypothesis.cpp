#include "capi/hypotheses/hypothesis.h"

#include <iterator>

#include "capi/base/error.h"
#include "neml2_capi.h"

namespace neml2_capi::model {
namespace {

// By number. A component is given (g), its strain is zero (0), or its stress vanishes (s).
struct Entry {
  const char *name, *components;
};
constexpr Entry entries[] = {
    {"tridimensional", "gggggg"}, {"plane_strain", "ggg00g"},
    {"axisymmetrical", "ggg00g"}, {"generalised_plane_strain", "ggg00g"},
    {"plane_stress", "ggsssg"},   {"uniaxial", "gsssss"},
    {"beam", "gsssgg"},           {"plane_beam", "gssssg"},
    {"shell", "ggsggg"},          {"axisymmetrical_generalised_plane_strain", "ggg000"},
};
static_assert(std::size(entries) == NEML2_AXISYMMETRICAL_GENERALISED_PLANE_STRAIN + 1);

}  // namespace

Hypothesis hypothesis_of(std::int32_t number) {
  if (number < 0 || number >= std::ssize(entries))
    throw Error(NEML2_ERROR_ARGUMENT, "hypothesis",
                join("There is no hypothesis ", number, "; see NEML2_TRIDIMENSIONAL and the others."));
  const Entry& entry = entries[number];
  Hypothesis found{entry.name, {}, {}, {}};
  for (std::int64_t c = 0; c < symmetric_size; ++c) {
    const char what = entry.components[c];
    (what == 'g' ? found.given : what == 's' ? found.free : found.zero).push_back(c);
  }
  return found;
}

}  // namespace neml2_capi::model
