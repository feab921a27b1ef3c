#include "capi/plugin/large_strain.h"

#include <algorithm>
#include <iterator>

#include "capi/plugin/material.h"

namespace neml2_capi::plugin {

using namespace deformation;

namespace {

Dense<6, 9> first_six(const Dense<9, 9>& slope) {
  Dense<6, 9> first;
  std::copy_n(slope.begin(), first.size(), first.begin());
  return first;
}

}  // namespace

Measure measure_of(const Mapping& mapping) {
  constexpr const char* names[] = {"", "logarithmic", "green_lagrange", "corotational"};
  const auto found = std::ranges::find(names, mapping.strain_measure);
  if (found == std::end(names))
    refuse("the mapping has the strain measure '" + mapping.strain_measure +
           "'; it can be logarithmic, green_lagrange or corotational.");
  return static_cast<Measure>(found - std::begin(names));
}

std::string LargeStrain::reason_against(const Matrix& gradient) {
  const double volume = determinant(gradient);
  return volume > 0 ? ""
                    : "the determinant of the deformation gradient is " + std::to_string(volume) +
                          "; expected one above 0, of a material that is not turned inside out.";
}

LargeStrain::LargeStrain(Measure measure, const Matrix& before, const Matrix& now)
    : gradient_before_(before), gradient_(now), before_(measure, before), now_(measure, now) {
  if (const std::string reason = reason_against(before); !reason.empty())
    refuse("at the beginning of the step " + reason);
}

Dense<9, 9> LargeStrain::slope(Stress wanted, const Six& of_law, const Dense<6, 6>& stiffness) const {
  const Deformation::Slopes slopes = now_.stress_slopes(wanted, of_law);
  Dense<9, 9> all = product<9, 6, 9>(slopes.by_law, product<6, 6, 9>(stiffness, now_.strain_slope()));
  std::transform(all.begin(), all.end(), slopes.by_gradient.begin(), all.begin(), std::plus<>());
  return all;
}

// dF = d(F F0^-1) F0.
Dense<6, 9> LargeStrain::by_increment(const Six& of_law, const Dense<6, 6>& stiffness) const {
  const Dense<6, 9> by_gradient = first_six(slope(Stress::kirchhoff, of_law, stiffness));
  Dense<6, 9> by{};
  for (std::size_t c = 0; c < 6; ++c)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 3; ++k)
        for (std::size_t j = 0; j < 3; ++j)
          by[9 * c + 3 * i + k] += by_gradient[9 * c + 3 * i + j] * gradient_before_[3 * k + j];
  return by;
}

Dense<6, 6> LargeStrain::by_green(const Six& of_law, const Dense<6, 6>& stiffness) const {
  return product<6, 9, 6>(first_six(slope(Stress::pk2, of_law, stiffness)), motion_of_green(gradient_));
}

Dense<6, 6> LargeStrain::of_jaumann(const Six& of_law, const Dense<6, 6>& stiffness) const {
  Dense<6, 6> by = product<6, 9, 6>(first_six(slope(Stress::kirchhoff, of_law, stiffness)), motion_of_rate(gradient_));
  for (double& each : by) each /= now_.volume();
  return by;
}

}  // namespace neml2_capi::plugin
