// UMAT of Abaqus/Standard, and of the hosts that call it so; docs/hosts tells what each passes.
//
// Given are the strain at the beginning and the end of the increment, time, temperature and predefined fields. If
// STRESS and STRAN come turned by DROT, STATEV is turned here. In a finite-strain analysis that is a law in the frame
// that turns with the material, of logarithmic strain and Cauchy stress. A mapping with a strain measure takes DFGRD0 and
// DFGRD1 instead.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <string>
#include <utility>

#include "capi/plugin/arguments.h"
#include "capi/plugin/bounds.h"
#include "capi/plugin/energies.h"
#include "capi/plugin/exported.h"
#include "capi/plugin/fatal.h"
#include "capi/plugin/hosts.h"
#include "capi/plugin/large_strain.h"
#include "capi/plugin/material.h"
#include "capi/plugin/point.h"
#include "capi/plugin/shears.h"

namespace neml2_capi::plugin {
namespace {

using deformation::Dense;
using deformation::Matrix;
using deformation::Six;

constexpr Words UMAT_WORDS{"STRAN", "STRAN + DSTRAN", "STRESS",       "STATEV", "PROPS",
                           "TIME",  "DTIME",          "TEMP + DTEMP", "PREDEF", "DDSDDE"};

// The arguments of UMAT that are used.
struct Arguments {
  double *stress, *statev, *ddsdde, *sse, *spd;
  const double *stran, *dstran, *time, *dtime, *temp, *dtemp, *predef, *dpred, *props, *drot, *dfgrd0, *dfgrd1;
  double* pnewdt;
  const char* cmname;
  int ndi, nshr, ntens, nstatv, nprops;
};

// Returns an element's hypothesis, from its components. Solids, plane strain and axial symmetry have all direct ones;
// shears that they lack are zero.
std::int32_t hypothesis_of(const Arguments& a) {
  struct Element {
    int ndi, nshr;
    std::int32_t hypothesis;
  };
  constexpr Element elements[] = {{3, 3, NEML2_TRIDIMENSIONAL}, {3, 1, NEML2_TRIDIMENSIONAL},
                                  {3, 0, NEML2_TRIDIMENSIONAL}, {2, 1, NEML2_PLANE_STRESS},
                                  {2, 3, NEML2_SHELL},          {1, 0, NEML2_UNIAXIAL},
                                  {1, 1, NEML2_PLANE_BEAM},     {1, 2, NEML2_BEAM}};
  for (const Element& each : elements)
    if (a.ndi == each.ndi && a.nshr == each.nshr && a.ntens == a.ndi + a.nshr) return each.hypothesis;
  refuse("elements with NTENS = " + std::to_string(a.ntens) + " (NDI = " + std::to_string(a.ndi) +
         ", NSHR = " + std::to_string(a.nshr) +
         ") are not supported. Use solids, plane strain, plane stress or axisymmetric ones, shells, beams or trusses.");
}

// Fortran's tensors are column by column.
Matrix matrix_of(const double* from) {
  Matrix matrix;
  std::copy_n(from, 9, matrix.begin());
  return deformation::transpose(matrix);
}

// Refuses a DROT that was never set: tensors in STATEV would be lost by it.
Matrix rotation_of(const double* drot) {
  constexpr double near = 1e-3;
  const Matrix turn = matrix_of(drot), square = deformation::multiply(deformation::transpose(turn), turn);
  for (std::size_t i = 0; i < square.size(); ++i)
    if (!(std::abs(square[i] - deformation::unit[i]) < near))
      refuse(
          "DROT is no rotation: its columns are not of length 1 and at right angles. Pass the rotation of the "
          "increment, the unit matrix if nothing turns.");
  if (deformation::determinant(turn) < 0)
    refuse("DROT is no rotation: it is a reflection, with the determinant -1. Pass the rotation of the increment.");
  return turn;
}

void require_numbers(const Matrix& gradient, const std::string& name) {
  if (!std::ranges::all_of(gradient, [](double number) { return std::isfinite(number); }))
    refuse(name + " is NaN or infinite. A smaller step does not mend that: find what made it so before this call.");
}

void check(const Arguments& a, const Host& host, const Material& m, const Material& whole) {
  const Mapping& mapping = m.mapping;
  const std::size_t others = mapping.nstatv() - whole.mapping.nstatv();
  require(a.nstatv, mapping.nstatv(), "state variables",
          others == 0 ? "set *DEPVAR to that" : "set *DEPVAR to that; the last ones hold strains that are solved for");
  require_constants(a.nprops, mapping);
  const auto turns = [](const Variable& state) { return state.kind != Kind::SCALAR; };
  if (host.turns && std::ranges::any_of(mapping.states, turns)) rotation_of(a.drot);
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

void gather(const Arguments& a, const Material& m, const Host& host, const Convention& tensors, Workspace& w) {
  const Convention& c = *host.convention;
  double strain[6];
  for (int i = 0; i < a.ntens; ++i) strain[i] = a.stran[i] + a.dstran[i];
  to_model(tensors, c.strain, a.stran, a.ntens, 1, w.old_strain.data());
  to_model(tensors, c.strain, strain, a.ntens, 1, w.strain.data());
  to_model(tensors, c.stress, a.stress, a.ntens, 1, w.old_state.data());
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
  const auto factor = [&](int i, double shear) { return i < c.direct ? 1 : shear; };
  for (int j = 0; j < a.ntens; ++j)
    for (int i = 0; i < a.ntens; ++i)
      a.ddsdde[i + j * a.ntens] =
          w.tangent[std::size_t(c.size * c.place[i] + c.place[j])] / (factor(i, c.stress) * factor(j, 1 / c.strain));
}

void scatter(const Arguments& a, const Material& m, const Host& host, const Convention& tensors, const Workspace& w) {
  to_host(tensors, tensors.stress, w.state.data(), a.ntens, 1, a.stress);
  scatter_tangent(a, tensors, w);
  states_to_host(m, *host.convention, w.state.data(), 1, a.statev);
  if (w.stays) return;
  if (!m.mapping.stored_energy.empty()) *a.sse = w.stored_energy(m, 0);
  if (!m.mapping.dissipated_energy.empty()) *a.spd = w.dissipated_energy(m, 0);
}

// DDSDDE of an increment in which nothing happens, in next to no time.
void stand_still(const Arguments& a, const Material& m, const Convention& c, Workspace& w) {
  for (const double part : MOMENTS) {
    w.stand_still(part, *a.dtime);
    if (evaluate_point(m, w, *a.dtime, UMAT_WORDS)) return scatter_tangent(a, c, w);
  }
  refuse("the point failed, and so did one at rest, whose tangent the host needs. Check the state and the constants.");
}

// Asks for a smaller step, unless an even smaller one is asked for. What no host passes, NaN among it, gives way.
void ask_for(double cut, double* pnewdt) {
  if (!(*pnewdt > 0 && *pnewdt <= cut)) *pnewdt = cut;
}

// The increment is tried again with a smaller step; STRESS and STATEV are as they were.
void give_up(const Arguments& a, const Material& m, const Host& host, const Convention& tensors, Workspace& w) {
  constexpr double halve = 0.5;
  if (w.status[0] == NEML2_OUT_OF_BOUNDS) give_up_beyond(m, w.cut[0]);
  if (!host.passes_pnewdt)
    refuse(std::string("the point ") +
           (w.status[0] == NEML2_OUT_OF_BOUNDS ? "is out of bounds"
            : w.status[0] > NEML2_NON_FINITE   ? "did not converge"
                                               : "has results that are not finite") +
           ", and " + host.name + " cannot be asked for a smaller step: reduce the load step. " + last_words());
  ask_for(w.cut[0] < 1 ? w.cut[0] : halve, a.pnewdt);
  if (!host.ignores_failures) stand_still(a, m, tensors, w);
}

void evaluate(const Arguments& a, const Material& whole) {
  const Material& m = under(whole, hypothesis_of(a));
  const Host& host = host_of(m, a.pnewdt);
  check(a, host, m, whole);
  const Convention tensors = &m == &whole ? *host.convention : some_of(*host.convention, m.components);
  Workspace& w = workspace(m, 1, Purpose::TANGENT);
  if (!std::exchange(w.fits_host, true)) check(host, m);
  gather(a, m, host, tensors, w);
  if (!evaluate_point(m, w, *a.dtime, UMAT_WORDS)) return give_up(a, m, host, tensors, w);
  require_kept(m, tensors, a.ntens, w.state.data(), w, 0);
  if (m.mapping.integrates_energies && !w.stays) {
    const Energies energies = energies_of(m, w, *a.dtime);
    *a.sse += energies.stored;
    *a.spd += energies.dissipated;
  }
  scatter(a, m, host, tensors, w);
}

// A law with a strain measure: of the deformation gradients instead of STRAN, in axes that do not turn. STRESS comes turned
// by DROT, and is turned back.
void evaluate_large(const Arguments& a, const Material& m) {
  const Host& host = host_of(m, a.pnewdt);
  if (!host.turns)
    refuse(std::string("the mapping has a strain measure, and ") + host.name +
           " passes no deformation gradient for it: make the library without.");
  if (a.ndi != 3)
    refuse("a law with a strain measure is for solids, plane strain and axisymmetric elements, of NDI = 3; it is " +
           std::to_string(a.ndi) + ".");
  const Convention& c = *host.convention;
  const int six = 6, shears = 3;
  const Matrix before = matrix_of(a.dfgrd0), now = matrix_of(a.dfgrd1), turn = rotation_of(a.drot);
  require_numbers(before, "DFGRD0");
  require_numbers(now, "DFGRD1");
  if (!LargeStrain::reason_against(now).empty()) {
    constexpr double halve = 0.5;
    return ask_for(halve, a.pnewdt);
  }
  const LargeStrain of(measure_of(m.mapping), before, now);
  Six given;
  to_model(c, c.stress, a.stress, a.ntens, 1, given.data());
  given = deformation::to_six(
      deformation::multiply(deformation::multiply(deformation::transpose(turn), deformation::to_matrix(given)), turn));
  Dense<9, 1> cauchy{};
  std::copy(given.begin(), given.end(), cauchy.begin());
  double stran[6], dstran[6], stress[6], ddsdde[36], pnewdt = 1;
  to_host(c, c.strain, of.old_strain().data(), six, 1, stran);
  to_host(c, c.strain, of.strain().data(), six, 1, dstran);
  for (int i = 0; i < six; ++i) dstran[i] -= stran[i];
  to_host(c, c.stress, of.old_stress(deformation::Stress::cauchy, cauchy).data(), six, 1, stress);
  Arguments law = a;
  law.stress = stress;
  law.stran = stran;
  law.dstran = dstran;
  law.ddsdde = ddsdde;
  law.drot = deformation::unit.data();
  law.pnewdt = &pnewdt;
  law.nshr = shears;
  law.ntens = six;
  evaluate(law, m);
  if (pnewdt < 1) return ask_for(pnewdt, a.pnewdt);
  Six of_law;
  Dense<6, 6> stiffness;
  to_model(c, c.stress, stress, six, 1, of_law.data());
  const auto factor = [&](int i, int j) { return (i < 3 ? 1 : c.stress) * (j < 3 ? 1 : 1 / c.strain); };
  for (int i = 0; i < six; ++i)
    for (int j = 0; j < six; ++j)
      stiffness[std::size_t(6 * c.place[i] + c.place[j])] = ddsdde[i + 6 * j] * factor(i, j);
  const Dense<9, 1> result = of.stress(deformation::Stress::cauchy, of_law);
  require_kept(m, c, a.ntens, result.data(), workspace(m, 1, Purpose::TANGENT), 0);
  to_host(c, c.stress, result.data(), a.ntens, 1, a.stress);
  const Dense<6, 6> tangent = of.of_jaumann(of_law, stiffness);
  for (int j = 0; j < a.ntens; ++j)
    for (int i = 0; i < a.ntens; ++i)
      a.ddsdde[i + j * a.ntens] = tangent[std::size_t(6 * c.place[i] + c.place[j])] / factor(i, j);
}

void evaluate(const Arguments& a) {
  const Material& m = material(a.cmname);
  m.mapping.strain_measure.empty() ? evaluate(a, m) : evaluate_large(a, m);
}

}  // namespace
}  // namespace neml2_capi::plugin

extern "C" EXPORTED void umat_(double* stress, double* statev, double* ddsdde, double* sse, double* spd, double*,
                               double*, double*, double*, double*, const double* stran, const double* dstran,
                               const double* time, const double* dtime, const double* temp, const double* dtemp,
                               const double* predef, const double* dpred, const char* cmname, const int* ndi,
                               const int* nshr, const int* ntens, const int* nstatv, const double* props,
                               const int* nprops, const double*, const double* drot, double* pnewdt, const double*,
                               const double* dfgrd0, const double* dfgrd1) {
  using namespace neml2_capi::plugin;
  try {
    evaluate({stress, statev, ddsdde, sse,    spd,    stran,  dstran, time, dtime, temp,   dtemp,   predef,
              dpred,  props,  drot,   dfgrd0, dfgrd1, pnewdt, cmname, *ndi, *nshr, *ntens, *nstatv, *nprops});
  } catch (const std::exception& error) {
    fatal("UMAT", cmname, error);
  }
}

ALSO_NAMED(umat_, UMAT)
ALSO_NAMED(umat_, umat)
