// A law of small strain for hosts that pass the deformation gradient: what the law takes of it, and what they get of its
// stress and tangent. The law itself is evaluated as without.
#pragma once

#include <string>

#include "capi/deformation/measure.h"
#include "capi/plugin/conventions.h"

namespace neml2_capi::plugin {

// Returns the measure that a mapping names. Throws neml2::Error if there is none of that name.
deformation::Measure measure_of(const Mapping& mapping);

// Deformation gradients of a step, and the law's arguments in NEML2's notation.
class LargeStrain {
 public:
  // Throws neml2::Error if a determinant at the beginning is not above 0.
  LargeStrain(deformation::Measure measure, const deformation::Matrix& before, const deformation::Matrix& now);

  // Why there is no strain at the end of the step, which must be smaller; empty if there is one.
  static std::string reason_against(const deformation::Matrix& gradient);

  deformation::Six old_strain() const { return before_.strain(); }
  deformation::Six strain() const { return now_.strain(); }
  // The law's stress at the beginning, of the host's.
  deformation::Six old_stress(deformation::Stress given, const deformation::Dense<9, 1>& stress) const {
    return before_.stress_of_law(given, stress);
  }
  deformation::Dense<9, 1> stress(deformation::Stress wanted, const deformation::Six& of_law) const {
    return now_.stress(wanted, of_law);
  }
  // d stress / dF of the law's stress and stiffness, (6, 6): the first rows.
  deformation::Dense<9, 9> slope(deformation::Stress wanted, const deformation::Six& of_law,
                                 const deformation::Dense<6, 6>& stiffness) const;
  // Slopes that hosts name otherwise: of Kirchhoff's stress by F F0^-1, of S by Green's strain, and Jaumann's rate of
  // Kirchhoff's stress over J, by the rate of deformation.
  deformation::Dense<6, 9> by_increment(const deformation::Six& of_law,
                                        const deformation::Dense<6, 6>& stiffness) const;
  deformation::Dense<6, 6> by_green(const deformation::Six& of_law, const deformation::Dense<6, 6>& stiffness) const;
  deformation::Dense<6, 6> of_jaumann(const deformation::Six& of_law, const deformation::Dense<6, 6>& stiffness) const;

 private:
  deformation::Matrix gradient_before_, gradient_;
  deformation::Deformation before_, now_;
};

}  // namespace neml2_capi::plugin
