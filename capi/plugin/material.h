// The materials of this library, and the arrays of their evaluations.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <neml2_capi.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capi/model/bounds.h"
#include "capi/plugin/mapping.h"

namespace neml2_capi::plugin {

struct Material {
  std::size_t number = 0;  // among the materials of the library
  Mapping mapping;
  neml2::Model model;
  std::set<std::string> inputs{};
  bool has_history = false;           // of strain, stress or a state: what happened before counts
  bool has_rates = false;             // the time at the beginning of an increment counts
  bool has_bounds = false;            // the law says where it is valid
  bool has_capsules = false;          // a folder is named, to which calls that fail are written
  std::vector<std::size_t> places{};  // of the states in a row of Workspace::state
  std::size_t row = 6;                // numbers of a point there: the stress, then the states
  // Places there of energies that are also states; nullopt if an energy is no state.
  std::optional<std::size_t> stored_place{}, dissipated_place{};
  std::vector<std::int64_t> components = {0, 1, 2, 3, 4, 5};  // of the strain and the stress, in NEML2's order
  std::shared_ptr<std::atomic<const Material*>[]> others {};  // by hypothesis: once it was opened under it
  std::shared_ptr<model::Occasions> out_of_bounds = std::make_shared<model::Occasions>();

  std::size_t size() const { return components.size(); }
};

// Returns the material that a host calls `cmname`: 80 characters, or less and a zero. A library of one material gives that
// for any name. All are loaded by the first call, whichever thread it comes from. Throws neml2::Error; the next call tries
// again.
const Material& material(const char* cmname);

// Returns a material under a hypothesis, NEML2_PLANE_STRESS for example, which is opened once. What the hypothesis adds to the
// history, strains that were solved for above all, are states behind the others, in the model's notation.
const Material& under(const Material& material, std::int32_t hypothesis);

// Calls a function for each material that has been opened, under each hypothesis.
void for_each_opened(void (*visit)(const Material&));

// Returns the only material. Throws neml2::Error if there are several.
const Material& only_material();

// Returns its name, for messages; what the host calls it if there is none of that name.
std::string material_name(const char* cmname);

// Throws neml2::Error, which ends the analysis, or an integration.
[[noreturn]] void refuse(const std::string& message);

// Refuses fewer items of STATEV, PROPS and the like than the material needs.
void require(int given, std::size_t needed, const char* what, const char* remedy);

// Refuses another number of constants than the mapping names: what is beyond them would count for nothing. If it names
// none, a host may give what it likes.
void require_constants(int given, const Mapping& mapping);

// Arrays in the model's notation, point by point, and the call that they are bound to. One for each thread.
class Workspace {
 public:
  Workspace(const Material& material, std::size_t points, bool with_tangent);

  std::size_t points() const { return status.size(); }

  // Strains, state, temperature and fields of the beginning stand at the end, too: nothing happens in an increment, which
  // takes a moment, one of MOMENTS. `step` is the time step of the host; 0 is allowed.
  void stand_still(double part, double step);

  // Return an energy of a point after a call.
  double stored_energy(const Material& m, std::size_t p) const {
    return m.stored_place ? state[m.row * p + *m.stored_place] : stored[p];
  }
  double dissipated_energy(const Material& m, std::size_t p) const {
    return m.dissipated_place ? state[m.row * p + *m.dissipated_place] : dissipated[p];
  }

  std::vector<double> strain, old_strain;            // Material::size() per point
  std::vector<double> state, old_state;              // Material::row per point
  std::vector<double> temperature, old_temperature;  // 1 per point
  std::vector<double> fields, old_fields;            // Mapping::nfields() per point
  std::vector<double> parameters;                    // PROPS as they are
  std::vector<double> tangent;                       // Material::size() squared per point, [stress][strain]
  std::vector<double> stored, dissipated;            // energies, 1 per point, if the model has them, not as states
  std::vector<double> cut;                           // by what to multiply the increment
  std::vector<std::int32_t> status;
  bool stays = false;      // the last point was at rest in no time: energies stay, too
  bool fits_host = false;  // UMAT has seen that the host passes all that the material needs
  double time = 0, old_time = 0;
  neml2::Call call;

 private:
  void bind(const Material& material, bool with_tangent);
};

// Parts of a time step that are moments, in which nothing flows. The first is the best; a law that solves for rates may
// not converge in it, since it divides round-off by it.
inline constexpr double MOMENTS[] = {1e-10, 1e-8, 1e-6};

// The time that a moment takes: that part of the step, or of 1 if that is 0, and well above the round-off of the time.
double moment(double part, double step, double time);

// What a workspace is for: each thread has one of each for a material.
enum class Purpose { VALUES, TANGENT, OPERATOR };

// Returns the workspace of the calling thread, with room for so many points.
Workspace& workspace(const Material& material, std::size_t points, Purpose purpose);

}  // namespace neml2_capi::plugin
