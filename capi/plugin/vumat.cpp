// VUMAT of Abaqus/Explicit: blocks of points, without a tangent.
//
// VUMAT is given increments of strain in a frame that turns with the material: nothing is turned here. The strain itself is
// kept behind the states of the mapping, in 6 more of STATEV (11, 22, 33, 12, 23, 31, shear not doubled). A point that
// fails ends the analysis: an explicit step cannot be tried again.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>

#include "capi/plugin/arguments.h"
#include "capi/plugin/bounds.h"
#include "capi/plugin/energies.h"
#include "capi/plugin/exported.h"
#include "capi/plugin/fatal.h"
#include "capi/plugin/material.h"
#include "capi/plugin/point.h"
#include "capi/plugin/shears.h"

namespace neml2_capi::plugin {
namespace {

// Behind messages of the library.
constexpr const char* FROM_ZERO = " (Here points of the block are counted from 0.)";
constexpr Words VUMAT_WORDS{"the strain in stateOld",
                            "strainInc",
                            "stressOld",
                            "stateOld",
                            "props",
                            "totalTime",
                            "dt",
                            "tempNew",
                            "fieldNew",
                            ""};

// The arguments of VUMAT that are used; a component of a point is `points` away from the next component.
struct Block {
  const char* cmname;
  std::size_t points;
  int ndir, nshr, nstatev, nfieldv, nprops;
  double time, dt;
  const double *props, *density, *strain_inc, *temp_old, *field_old, *stress_old, *state_old, *internal_old,
      *inelastic_old, *temp_new, *field_new;
  double *stress_new, *state_new, *internal_new, *inelastic_new;

  int components() const { return ndir + nshr; }
};

void check(const Block& b, const Mapping& map) {
  if (!map.strain_measure.empty())
    refuse(
        "the mapping has the strain measure '" + map.strain_measure +
        "', and Abaqus/Explicit passes increments of strain in a frame that turns with the material, no strain of that "
        "measure: leave strain_measure out of the mapping for VUMAT.");
  if (b.ndir != 3 || (b.nshr != 1 && b.nshr != 3))
    refuse("elements with NDIR = " + std::to_string(b.ndir) + " and NSHR = " + std::to_string(b.nshr) +
           " are not supported. Use solid, plane strain or axisymmetric ones.");
  require(b.nstatev, map.nstatv() + 6, "state variables", "set *DEPVAR to that; the last 6 hold the strain");
  require_constants(b.nprops, map);
  require(b.nfieldv, map.nfields(), "field variables", "give them with *FIELD");
}

void gather(const Block& b, const Material& m, Workspace& w) {
  const Mapping& map = m.mapping;
  const std::size_t n = b.points, count = std::size_t(b.components());
  w.time = b.time;
  w.old_time = b.time - b.dt;
  std::copy_n(b.state_old, n * std::size_t(b.nstatev), b.state_new);  // the mapping may name a part of them
  for (std::size_t p = 0; p < n; ++p) {
    const double* kept = b.state_old + p + map.nstatv() * n;
    double* strain = b.state_new + p + map.nstatv() * n;
    for (std::size_t i = 0; i < 6; ++i) strain[i * n] = kept[i * n] + (i < count ? b.strain_inc[p + i * n] : 0);
    to_model(VUMAT, VUMAT.strain, kept, 6, n, &w.old_strain[6 * p]);
    to_model(VUMAT, VUMAT.strain, strain, 6, n, &w.strain[6 * p]);
    to_model(VUMAT, VUMAT.stress, b.stress_old + p, b.components(), n, &w.old_state[m.row * p]);
    states_to_model(m, VUMAT, b.state_old + p, n, nullptr, &w.old_state[m.row * p]);
    w.old_temperature[p] = b.temp_old[p];
    w.temperature[p] = b.temp_new[p];
    fields_to_model(m, VUMAT, b.field_old + p, n, w.old_fields.data() + p * map.nfields());
    fields_to_model(m, VUMAT, b.field_new + p, n, w.fields.data() + p * map.nfields());
  }
  parameters_to_model(m, VUMAT, b.props, w.parameters.data());
}

// Refuses stresses that Abaqus would forget. Where one is beyond the round-off of the stress, what cancelled in it counts.
void require_all_kept(const Block& b, const Material& m, const Workspace& w) {
  if (!forgets_shears(m, b.components())) return;
  const auto is_suspect = [&](std::size_t p) {
    return has_more_shears(VUMAT, b.components(), &w.state[m.row * p], greatest_stress(m, w, p));
  };
  std::size_t first = 0;
  while (first < b.points && !is_suspect(first)) ++first;
  if (first == b.points) return;
  Workspace& again = workspace(m, b.points, Purpose::TANGENT);
  gather(b, m, again);
  const Workspace& of = again.call.run(std::int64_t(b.points)) == NEML2_OK ? again : w;
  for (std::size_t p = first; p < b.points; ++p) require_kept(m, VUMAT, b.components(), &w.state[m.row * p], of, p);
}

void scatter(const Block& b, const Material& m, const Workspace& w) {
  for (std::size_t p = 0; p < b.points; ++p) {
    to_host(VUMAT, VUMAT.stress, &w.state[m.row * p], b.components(), b.points, b.stress_new + p);
    states_to_host(m, VUMAT, &w.state[m.row * p], b.points, b.state_new + p);
  }
}

// Energies are per mass. The internal one is all work, and what of it is dissipated is inelastic.
void write_energies(const Block& b, const Material& m, const Workspace& w) {
  const Mapping& map = m.mapping;
  const bool is_total = !map.stored_energy.empty() || !map.dissipated_energy.empty();
  if (!is_total && !map.integrates_energies) return;
  for (std::size_t p = 0; p < b.points; ++p) {
    if (!(b.density[p] > 0))
      refuse("the density of point " + std::to_string(p + 1) + " is " + std::to_string(b.density[p]) +
             ", and energies are per mass: give a density above 0.");
    Energies energies;
    if (map.integrates_energies) energies = energies_of(m, w, b.dt, p);
    if (!map.stored_energy.empty()) energies.stored = w.stored_energy(m, p);
    if (!map.dissipated_energy.empty()) energies.dissipated = w.dissipated_energy(m, p);
    b.internal_new[p] = (energies.stored + energies.dissipated) / b.density[p];
    b.inelastic_new[p] = energies.dissipated / b.density[p];
    if (is_total) continue;
    b.internal_new[p] += b.internal_old[p];
    b.inelastic_new[p] += b.inelastic_old[p];
  }
}

// The results of points at rest in no time, of which a law of rates has none; states and strain are there already.
void stay(const Block& b, const Mapping& map) {
  std::copy_n(b.stress_old, b.points * std::size_t(b.components()), b.stress_new);
  if (map.stored_energy.empty() && map.dissipated_energy.empty() && !map.integrates_energies) return;
  std::copy_n(b.internal_old, b.points, b.internal_new);
  std::copy_n(b.inelastic_old, b.points, b.inelastic_new);
}

// What to say of points that failed.
std::string reason(const Block& b, const Material& m, const Workspace& w) {
  const auto begin = w.status.begin(), end = begin + std::ptrdiff_t(b.points);
  if (std::find(begin, end, NEML2_OUT_OF_BOUNDS) != end) return last_words() + FROM_ZERO;
  if (b.dt == 0 && m.has_rates) return "dt is 0, and the law has rates, which divide by it: give a time step above 0.";
  const auto did_not_converge = [](std::int32_t status) { return status > NEML2_NON_FINITE; };
  const auto is_not_finite = [](std::int32_t status) { return status == NEML2_NON_FINITE; };
  const auto these = [&](const auto& failed, const std::string& what) {
    return std::to_string(std::count_if(begin, end, failed)) + " of " + std::to_string(b.points) + " points " + what +
           " (the first is point " + std::to_string(std::find_if(begin, end, failed) - begin + 1) + " of the block)";
  };
  if (std::any_of(begin, end, did_not_converge))
    return these(did_not_converge, "did not converge") +
           ": reduce the time step, or allow substeps when the model is compiled.";
  return "the results of " + these(is_not_finite, "are not finite") +
         ". Check the state and the constants, and where the law divides, takes roots or logarithms.";
}

// Returns how many points a block has; a part of a model may have none of the material.
std::size_t points_of(int nblock) {
  if (nblock < 0) refuse("NBLOCK is " + std::to_string(nblock) + "; it is the number of points, 0 or more.");
  return std::size_t(nblock);
}

void evaluate(const Block& b) {
  const Material& m = material(b.cmname);
  check(b, m.mapping);
  if (b.points == 0) return;
  Workspace& w = workspace(m, b.points, Purpose::VALUES);
  gather(b, m, w);
  require_finite(m, w, b.points, b.dt, VUMAT_WORDS);
  const bool good = w.call.run(std::int64_t(b.points)) == NEML2_OK;
  tell_warnings(m, FROM_ZERO);
  const auto begin = w.status.begin(), end = begin + std::ptrdiff_t(b.points);
  const bool in_bounds = std::find(begin, end, NEML2_OUT_OF_BOUNDS) == end;
  if (!good && in_bounds && b.dt == 0 && m.has_rates && stands_still(m, w, b.points)) return stay(b, m.mapping);
  if (!good) refuse(reason(b, m, w));
  require_all_kept(b, m, w);
  write_energies(b, m, w);
  scatter(b, m, w);
}

}  // namespace
}  // namespace neml2_capi::plugin

extern "C" EXPORTED void vumat_(const int* nblock, const int* ndir, const int* nshr, const int* nstatev,
                                const int* nfieldv, const int* nprops, const int*, const double*,
                                const double* total_time, const double* dt, const char* cmname, const double*,
                                const double*, const double* props, const double* density, const double* strain_inc,
                                const double*, const double* temp_old, const double*, const double*,
                                const double* field_old, const double* stress_old, const double* state_old,
                                const double* internal_old, const double* inelastic_old, const double* temp_new,
                                const double*, const double*, const double* field_new, double* stress_new,
                                double* state_new, double* internal_new, double* inelastic_new) {
  using namespace neml2_capi::plugin;
  try {
    evaluate({cmname,   points_of(*nblock), *ndir,      *nshr,     *nstatev,     *nfieldv,
              *nprops,  *total_time,        *dt,        props,     density,      strain_inc,
              temp_old, field_old,          stress_old, state_old, internal_old, inelastic_old,
              temp_new, field_new,          stress_new, state_new, internal_new, inelastic_new});
  } catch (const std::exception& error) {
    fatal("VUMAT", cmname, error);
  }
}

ALSO_NAMED(vumat_, VUMAT)
ALSO_NAMED(vumat_, vumat)
