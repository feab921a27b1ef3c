#include "capi/plugin/hosts.h"

#include <neml2_capi.hpp>

namespace neml2_capi::plugin {
namespace {

constexpr Host HOSTS[] = {
    {"abaqus", true, true, true, true, true, true, true, true, &UMAT},
    {"calculix", true, false, false, false, true, false, false, true, &UMAT},
    {"kratos", false, false, false, false, false, false, false, false, &KRATOS},
};

// A host to which a negative PNEWDT is no request may pass the request of another point, which is positive. None passes 0
// or NaN.
bool speaks_as(const Host& host, const double* pnewdt) {
  if (!pnewdt || !host.passes_pnewdt) return !pnewdt == !host.passes_pnewdt;
  return *pnewdt > 0 || (*pnewdt < 0 && !host.asks_positive);
}

void require_set(const double* pnewdt) {
  if (!pnewdt || *pnewdt > 0 || *pnewdt < 0) return;
  throw neml2::Error(NEML2_ERROR_ARGUMENT, "PNEWDT",
                     std::string("PNEWDT is ") + (*pnewdt == 0 ? "0" : "NaN") +
                         ", and tells no host: Abaqus passes a positive number, CalculiX -1. Set it to 1, as Abaqus "
                         "does, before each call.");
}

}  // namespace

const Host& find_host(const std::string& name, const double* pnewdt) {
  require_set(pnewdt);
  for (const Host& host : HOSTS)
    if (name.empty() ? speaks_as(host, pnewdt) : host.name == name) return host;
  throw neml2::Error(NEML2_ERROR_ARGUMENT, name,
                     "There is no host '" + name + "'; it can be abaqus, calculix or kratos.");
}

void check_host(const Host& host, const double* pnewdt) {
  require_set(pnewdt);
  if (speaks_as(host, pnewdt)) return;
  const std::string passed = !pnewdt       ? "is not passed, as by Kratos"
                             : *pnewdt > 0 ? "is passed"
                                           : "is negative, as CalculiX passes it";
  throw neml2::Error(NEML2_ERROR_ARGUMENT, "PNEWDT",
                     "PNEWDT " + passed + ", and the host is " + host.name + ": make the library with --host.");
}

}  // namespace neml2_capi::plugin
