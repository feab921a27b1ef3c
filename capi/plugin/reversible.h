// The elastic operator of a compiled law, of which nothing is known but its stress and its tangent.
//
// It is the derivative of what is reversible: of increments that take no time, and that an increment back undoes. Laws of
// rates do not flow in no time. A law without rates flows on one side of its yield surface, and not on the other, which is
// the stiffer one. Of a damaged material it is the stiffness that is left. The strain is moved in all directions and back;
// a law whose stress does not return has no such operator, which is an error.
#pragma once

#include "capi/plugin/material.h"

namespace neml2_capi::plugin {

// Where a point is; the increment ends there, or begins.
struct Rest {
  const double *strain, *state, *temperature, *fields, *parameters;  // in the model's notation
  double time, step;
};

// Writes the elastic operator, Material::size() squared numbers [stress][strain], in the model's notation. Throws neml2::Error if there is
// none.
void elastic_operator(const Material& material, const Rest& rest, double* to);

// The secant operator: the elastic one, if the stress goes back in proportion to it. Throws neml2::Error elsewhere.
void secant_operator(const Material& material, const Rest& rest, double* to);

}  // namespace neml2_capi::plugin
