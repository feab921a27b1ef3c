// Parameters of the generic behaviour `NEML2`, which MGIS sets by name: options of the solver, and constants of the law that
// the mapping file does not make material properties. They hold for all points under a hypothesis from then on.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

#include "capi/plugin/exported.h"
#include "capi/plugin/fatal.h"
#include "capi/plugin/material.h"
#include "capi/plugin/point.h"

namespace neml2_capi::plugin {
namespace {

// Throws if the model has no such number, or it is out of bounds.
void set_number(const char* name, double value, std::int32_t hypothesis) {
  if (!name) refuse("the name of the parameter is a null pointer.");
  const std::string wanted = name;
  const Material& m = under(only_material(), hypothesis);
  const auto& properties = m.mapping.parameters;
  if (std::any_of(properties.begin(), properties.end(), [&](const Variable& each) { return each.name == wanted; }))
    refuse("the parameter '" + wanted + "' is a material property: set it there, or leave it out of the mapping file.");
  if (!std::isfinite(value)) refuse("the parameter '" + wanted + "' is " + std::to_string(value) + ".");
  const auto options = m.model.options();
  const auto is_wanted = [&](const auto& option) { return option.name == wanted && option.choices.empty(); };
  const bool is_option = std::any_of(options.begin(), options.end(), is_wanted);
  const std::int32_t status =
      is_option ? neml2_model_option_set_number(m.model.get(), name, value)
                : neml2_model_parameter_set(m.model.get(), name, neml2::Tensor::copy(value, {}).get());
  if (status != NEML2_OK) refuse(last_words());
}

// 1 if it was set. MGIS says no more than that it was not.
int set(const char* name, double value, std::int32_t hypothesis) {
  try {
    set_number(name, value, hypothesis);
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "neml2_capi: %s\n", words_of(error));
    return 0;
  }
}

}  // namespace
}  // namespace neml2_capi::plugin

extern "C" {

// Each hypothesis is a model of its own, and MGIS looks for its functions first.
#define NML2_PARAMETERS_OF(name, hypothesis)                                                           \
  EXPORTED int NEML2_##name##_setParameter(const char* parameter, double value) {                      \
    return neml2_capi::plugin::set(parameter, value, hypothesis);                                      \
  }                                                                                                    \
  EXPORTED int NEML2_##name##_setIntegerParameter(const char* parameter, int value) {                  \
    return neml2_capi::plugin::set(parameter, value, hypothesis);                                      \
  }                                                                                                    \
  EXPORTED int NEML2_##name##_setUnsignedShortParameter(const char* parameter, unsigned short value) { \
    return neml2_capi::plugin::set(parameter, value, hypothesis);                                      \
  }
NML2_PARAMETERS_OF(Tridimensional, NEML2_TRIDIMENSIONAL)
NML2_PARAMETERS_OF(PlaneStrain, NEML2_PLANE_STRAIN)
NML2_PARAMETERS_OF(PlaneStress, NEML2_PLANE_STRESS)
NML2_PARAMETERS_OF(Axisymmetrical, NEML2_AXISYMMETRICAL)
NML2_PARAMETERS_OF(GeneralisedPlaneStrain, NEML2_GENERALISED_PLANE_STRAIN)
NML2_PARAMETERS_OF(AxisymmetricalGeneralisedPlaneStrain, NEML2_AXISYMMETRICAL_GENERALISED_PLANE_STRAIN)

// Parameters of every behaviour; setParameter takes the law's other constants, too. Their types are MFront's: a number,
// or a count.
EXPORTED unsigned short NEML2_nParameters = 4;
EXPORTED const char* NEML2_Parameters[] = {"atol", "rtol", "miters", "rescue"};
EXPORTED int NEML2_ParametersTypes[] = {0, 0, 2, 2};

}  // extern "C"
