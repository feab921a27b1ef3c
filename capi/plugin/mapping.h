// Which variable of the artifact is which argument of a host: what the mapping file says, checked and with sizes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace neml2_capi::plugin {

// How a host writes a variable, and turns it with the material.
enum class Kind { SCALAR, VECTOR, SYMMETRIC, TENSOR };

struct Variable {
  std::string name;
  Kind kind = Kind::SCALAR;
  std::size_t first = 0;       // in STATEV, PROPS or PREDEF, counted from 0
  std::size_t size = 1;        // at one point
  std::vector<double> offset;  // what is added to what the host has, as NEML2 has it; empty: nothing
};

// An input that is the same at all points and times.
struct Constant {
  std::string name;
  std::vector<double> values;
};

// Solves after which a point that does not converge is left to the host, which cuts its step. A mapping may say otherwise.
inline constexpr double MOST_RESCUE_SOLVES = 100;

struct Mapping {
  std::string material, host, strain, stress, time, temperature;  // "" if there is none
  std::string strain_measure;                    // around the law, for hosts that pass F: logarithmic and so on
  std::string symmetry;                          // of the material: isotropic or orthotropic
  std::string stored_energy, dissipated_energy;  // outputs, per volume; "" if there is none
  bool integrates_energies = false;              // by the trapezoidal rule
  std::vector<Variable> states, parameters, fields;
  std::vector<Constant> constants;
  using Option = std::variant<double, std::string>;
  std::vector<std::pair<std::string, Option>> options;
  double atol = 0, rtol = 0, miters = 0;  // of the artifact's solver
  bool has_stress_history = false;        // the stress of the step before is an input
  std::size_t begin = 0, size = 0;        // of its artifact, in the artifacts of the library

  // Returns the number of an option, or another one if the mapping file does not have it.
  double option(const std::string& name, double otherwise) const;
  std::size_t nstatv() const { return end_of(states); }
  std::size_t nprops() const { return end_of(parameters); }
  std::size_t nfields() const { return end_of(fields); }

 private:
  static std::size_t end_of(const std::vector<Variable>& variables);
};

// Reads the JSON that neml2_capi/umat/properties.py writes: a mapping for each material.
std::vector<Mapping> read_mappings(std::string_view json);

}  // namespace neml2_capi::plugin
