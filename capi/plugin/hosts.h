// Hosts of UMAT: the arguments that a program passes, and its use of a point that failed.
//
//                                                        abaqus       calculix         kratos
//   PNEWDT that asks for nothing                         positive     negative         is not passed
//   state, stress and strain that come in                turn, DROT   stay             stay
//   stress and tangent of a failed point                 are unused   enter the matrix enter the matrix
//   temperature at the beginning                         is TEMP      is unknown       is unknown
//   predefined fields                                    are there    are not          are not
#pragma once

#include <string>

namespace neml2_capi::plugin {

struct Host {
  const char* name;
  bool passes_pnewdt, asks_positive, turns, ignores_failures, has_temperature, has_old_temperature, has_fields;
};

// The host `name`; where that is empty, the one that passes such a PNEWDT (null: none).
// Throws neml2::Error for a name that is not known, or a PNEWDT that the host does not pass.
const Host& find_host(const std::string& name, const double* pnewdt);

// Throws neml2::Error where the host cannot have passed this PNEWDT.
void check_host(const Host& host, const double* pnewdt);

}  // namespace neml2_capi::plugin
