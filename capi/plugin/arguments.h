// The variables of a mapping, between the arrays of a host and the arrays of a workspace.
//
// `from` and `to` are of one point; the numbers of a host stand `stride` apart.
#pragma once

#include <cstddef>
#include <vector>

#include "capi/plugin/conventions.h"
#include "capi/plugin/material.h"

namespace neml2_capi::plugin {

// All states to the row of a point in a workspace, turned by `drot` unless it is null; and back.
void states_to_model(const Material& material, const Convention& convention, const double* from, std::size_t stride,
                     const double* drot, double* to);
void states_to_host(const Material& material, const Convention& convention, const double* from, std::size_t stride,
                    double* to);

void fields_to_model(const Material& material, const Convention& convention, const double* from, std::size_t stride,
                     double* to);
void parameters_to_model(const Material& material, const Convention& convention, const double* from, double* to);

}  // namespace neml2_capi::plugin
