// UMAT of Abaqus/Standard, and of the hosts that call it so; docs/hosts tells what each passes.
//
// Given are the strain at the beginning and the end of the increment, time, temperature and predefined fields. If
// STRESS and STRAN come turned by DROT, STATEV is turned here. In a finite-strain analysis that is a law in the frame
// that turns with the material, of logarithmic strain and Cauchy stress.
#include <atomic>
#include <exception>
#include <string>
#include <utility>

#include "capi/plugin/arguments.h"
#include "capi/plugin/fatal.h"
#include "capi/plugin/hosts.h"
#include "capi/plugin/material.h"
#include "capi/plugin/point.h"

namespace neml2_capi::plugin {
namespace {

constexpr Words WORDS{"STRAN", "STRAN + DSTRAN", "STRESS",       "STATEV", "PROPS",
                      "TIME",  "DTIME",          "TEMP + DTEMP", "PREDEF", "DDSDDE"};

// The arguments of UMAT that are used.
struct Arguments {
  double *stress, *statev, *ddsdde, *sse, *spd;
  const double *stran, *dstran, *time, *dtime, *temp, *dtemp, *predef, *dpred, *props, *drot;
  double* pnewdt;
  const char* cmname;
  int ndi, nshr, ntens, nstatv, nprops;
};

void check(const Arguments& a, const Mapping& mapping) {
  if (a.ndi != 3 || (a.ntens != 6 && a.ntens != 4) || a.nshr != a.ntens - a.ndi)
    refuse("elements with NTENS = " + std::to_string(a.ntens) + " (NDI = " + std::to_string(a.ndi) +
           ", NSHR = " + std::to_string(a.nshr) +
           ") are not supported. Use solid, plane strain or axisymmetric ones, with NTENS = 6 or 4: plane stress, "
           "shells and beams would need a model with their own conditions of zero stress.");
  require(a.nstatv, mapping.nstatv(), "state variables", "set *DEPVAR to that");
  require(a.nprops, mapping.nprops(), "material constants", "give them to *USER MATERIAL, CONSTANTS");
}

// Refuse a mapping that names what the host does not pass.
void check(const Host& host, const Material& m) {
  const auto needs = [&](bool passed, const std::string& input, const char* what, const char* instead) {
    if (!passed && m.inputs.count(input))
      refuse("The input '" + input + "' is " + what + ", which " + host.name + " does not pass: " + instead + ".");
  };
  const Mapping& map = m.mapping;
  if (!map.temperature.empty()) {
    needs(host.has_temperature, map.temperature, "the temperature",
          "give it a constant value in the mapping (&field, value)");
    needs(host.has_old_temperature, map.temperature + "~1", "the temperature at the beginning of an increment",
          "use a law of the temperature at its end");
  }
  for (const Variable& field : map.fields)
    needs(host.has_fields, field.name, "a predefined field", "give it a constant value in the mapping (&field, value)");
}

// The host of the first call is the host of all.
const Host& host_of(const Material& m, const double* pnewdt) {
  static std::atomic<const Host*> known{nullptr};
  if (!known) known = &find_host(m.mapping.host, pnewdt);
  check_host(*known, pnewdt);
  return *known;
}

void gather(const Arguments& a, const Material& m, const Host& host, Workspace& w) {
  const Convention& c = *host.convention;
  double strain[6];
  for (int i = 0; i < a.ntens; ++i) strain[i] = a.stran[i] + a.dstran[i];
  to_model(c, c.strain, a.stran, a.ntens, 1, w.old_strain.data());
  to_model(c, c.strain, strain, a.ntens, 1, w.strain.data());
  to_model(c, c.stress, a.stress, a.ntens, 1, w.old_state.data());
  w.old_time = a.time[host.has_total_time ? 1 : 0];
  w.time = w.old_time + *a.dtime;
  if (host.has_temperature) {
    w.old_temperature[0] = *a.temp;
    w.temperature[0] = *a.temp + *a.dtemp;
  }
  if (host.has_fields) {
    fields_to_model(m, c, a.predef, 1, w.old_fields.data());
    for (std::size_t i = 0; i < w.fields.size(); ++i) w.fields[i] = w.old_fields[i] + a.dpred[i];
  }
  states_to_model(m, c, a.statev, 1, host.turns ? a.drot : nullptr, w.old_state.data());
  parameters_to_model(m, c, a.props, w.parameters.data());
}

// DDSDDE(i, j) = d stress(i) / d strain(j), column by column.
void scatter_tangent(const Arguments& a, const Convention& c, const Workspace& w) {
  for (int j = 0; j < a.ntens; ++j)
    for (int i = 0; i < a.ntens; ++i)
      a.ddsdde[i + j * a.ntens] =
          w.tangent[std::size_t(6 * c.place[i] + c.place[j])] / ((i < 3 ? 1 : c.stress) * (j < 3 ? 1 : 1 / c.strain));
}

void scatter(const Arguments& a, const Material& m, const Convention& c, const Workspace& w) {
  to_host(c, c.stress, w.state.data(), a.ntens, 1, a.stress);
  scatter_tangent(a, c, w);
  states_to_host(m, c, w.state.data(), 1, a.statev);
  if (!m.mapping.stored_energy.empty()) *a.sse = w.stored[0];
  if (!m.mapping.dissipated_energy.empty()) *a.spd = w.dissipated[0];
}

// DDSDDE of an increment in which nothing happens, in next to no time.
void stand_still(const Arguments& a, const Material& m, const Convention& c, Workspace& w) {
  for (const double part : MOMENTS) {
    w.stand_still(part, *a.dtime);
    if (evaluate_point(m, w, *a.dtime, WORDS)) return scatter_tangent(a, c, w);
  }
  refuse("the point failed, and so did one at rest, whose tangent the host needs. Check the state and the constants.");
}

// The increment is tried again with a smaller step; STRESS and STATEV are as they were.
void give_up(const Arguments& a, const Material& m, const Host& host, Workspace& w) {
  constexpr double halve = 0.5;
  if (!host.passes_pnewdt)
    refuse(std::string("the point ") +
           (w.status[0] > NEML2_NON_FINITE ? "did not converge" : "has results that are not finite") + ", and " +
           host.name + " cannot be asked for a smaller step: reduce the load step. " + last_words());
  const double cut = w.cut[0] < 1 ? w.cut[0] : halve;
  if (*a.pnewdt <= 0 || cut < *a.pnewdt) *a.pnewdt = cut;
  if (!host.ignores_failures) stand_still(a, m, *host.convention, w);
}

void evaluate(const Arguments& a) {
  const Material& m = material(a.cmname);
  const Host& host = host_of(m, a.pnewdt);
  check(a, m.mapping);
  Workspace& w = workspace(m, 1, Purpose::TANGENT);
  if (!std::exchange(w.fits_host, true)) check(host, m);
  gather(a, m, host, w);
  if (evaluate_point(m, w, *a.dtime, WORDS))
    scatter(a, m, *host.convention, w);
  else
    give_up(a, m, host, w);
}

}  // namespace
}  // namespace neml2_capi::plugin

extern "C" __attribute__((visibility("default"))) void umat_(
    double* stress, double* statev, double* ddsdde, double* sse, double* spd, double*, double*, double*, double*,
    double*, const double* stran, const double* dstran, const double* time, const double* dtime, const double* temp,
    const double* dtemp, const double* predef, const double* dpred, const char* cmname, const int* ndi, const int* nshr,
    const int* ntens, const int* nstatv, const double* props, const int* nprops, const double*, const double* drot,
    double* pnewdt) {
  using namespace neml2_capi::plugin;
  try {
    evaluate({stress, statev, ddsdde, sse,  spd,    stran,  dstran, time,  dtime,  temp,    dtemp,
              predef, dpred,  props,  drot, pnewdt, cmname, *ndi,   *nshr, *ntens, *nstatv, *nprops});
  } catch (const std::exception& error) {
    fatal("UMAT", cmname, error);
  }
}
