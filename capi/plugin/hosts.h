// Hosts of UMAT: the arguments that a program passes, and its use of a point that failed.
//
//                                                        abaqus       calculix         kratos
//   PNEWDT that asks for nothing                         positive     negative         is not passed
//   state, stress and strain that come in                turn, DROT   stay             stay
//   stress and tangent of a failed point                 are unused   enter the matrix enter the matrix
//   temperature at the beginning                         is TEMP      is unknown       is unknown
//   predefined fields                                    are there    are not          are not
//   TIME(2), the time of all steps                       is there     is there         is beyond TIME
//   shear components                                     12, 13, 23   12, 13, 23       12, 23, 13
#pragma once

#include <string>

#include "capi/plugin/conventions.h"

namespace neml2_capi::plugin {

struct Host {
  const char* name;
  bool passes_pnewdt, asks_positive, turns, ignores_failures, has_temperature, has_old_temperature, has_fields;
  bool has_total_time;
  const Convention* convention;
};

// The host `name`; if that is empty, the one that passes such a PNEWDT (null: none).
// Throws neml2::Error for a name that is not known, or a PNEWDT that the host does not pass.
const Host& find_host(const std::string& name, const double* pnewdt);

// Throws neml2::Error if the host cannot have passed this PNEWDT.
void check_host(const Host& host, const double* pnewdt);

}  // namespace neml2_capi::plugin
