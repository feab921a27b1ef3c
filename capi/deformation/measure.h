// Strain measures around a law of small strain: its strain from the deformation gradient F, other stresses from its own, and
// the derivatives of both.
//
//                   strain of the law          its stress is
//   logarithmic     ln(C) / 2                  conjugate to that: Miehe, Apel, Lambrecht, Comput. Methods Appl. Mech. Eng.
//                                              191 (2002) 3383
//   green_lagrange  (C - 1) / 2                the second Piola-Kirchhoff stress
//   corotational    ln(U), F = R U             R^T sigma R, Cauchy's stress in axes that turn with the material
#pragma once

#include "capi/deformation/spectrum.h"

namespace neml2_capi::deformation {

enum class Measure { none, logarithmic, green_lagrange, corotational };
enum class Stress { pk1, cauchy, pk2, kirchhoff };

// Return what users call them.
constexpr const char* name_of(Measure measure) {
  constexpr const char* names[] = {"", "logarithmic", "green_lagrange", "corotational"};
  return names[static_cast<std::size_t>(measure)];
}
constexpr const char* name_of(Stress stress) {
  constexpr const char* names[] = {"pk1", "cauchy", "pk2", "kirchhoff"};
  return names[static_cast<std::size_t>(stress)];
}

// Returns the number of components: P of F is no symmetric tensor.
constexpr std::size_t size_of(Stress stress) { return stress == Stress::pk1 ? 9 : 6; }

// A deformation gradient whose determinant is above 0.
class Deformation {
 public:
  Deformation(Measure measure, const Matrix& gradient);

  double volume() const { return volume_; }
  Six strain() const;
  // d strain / dF.
  Dense<6, 9> strain_slope() const;

  // Converts the law's stress, by the second Piola-Kirchhoff stress, to the wanted one: the first size_of() numbers.
  Dense<9, 1> stress(Stress wanted, const Six& of_law) const;

  // Returns the law's stress from another one, given by its first size_of() numbers: the inverse of stress().
  Six stress_of_law(Stress given, const Dense<9, 1>& stress) const;

  // Derivatives of a stress by the law's at constant F, and by F at a constant law's stress: the first size_of() rows.
  struct Slopes {
    Dense<9, 6> by_law;
    Dense<9, 9> by_gradient;
  };
  Slopes stress_slopes(Stress wanted, const Six& of_law) const;

 private:
  Six second_piola(const Six& of_law) const;
  Six in_reference(const Matrix& tensor) const;
  Matrix in_stretches(const Six& tensor) const;
  Six scaled(const Six& tensor, const Six& factors) const;
  Six factors_to_second() const;
  Dense<6, 6> second_slope(const Six& of_law, const Dense<6, 6>& turn) const;
  Dense<9, 6> second_to(Stress wanted) const;

  Measure measure_;
  Matrix gradient_;
  double volume_;
  Spectrum spectrum_;
};

// d strain of the law / dF becomes other slopes by how F moves: with a symmetric rate of deformation D, dF = D F; with
// Green's strain E, dF = F^-T dE. Each has one column for a component in Mandel notation.
Dense<9, 6> motion_of_rate(const Matrix& gradient);
Dense<9, 6> motion_of_green(const Matrix& gradient);

}  // namespace neml2_capi::deformation
