#include "capi/views/large_strain.h"

#include <algorithm>

#include "capi/base/error.h"
#include "capi/base/log.h"

namespace neml2_capi::model {
namespace {

using deformation::Deformation;
using deformation::Matrix;
using deformation::Measure;
using deformation::Six;

constexpr const char* gradient_name = "deformation_gradient";

template <std::size_t size>
std::array<double, size> array_of(const Vector<double>& numbers) {
  std::array<double, size> all;
  std::copy_n(numbers.begin(), size, all.begin());
  return all;
}

template <class Numbers>
void assign(Vector<double>& to, const Numbers& from, std::size_t count) {
  to.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

// The strain of the law becomes an output: with it `strain~1` is carried, and begins at zero.
LargeStrain::LargeStrain(const Model& law, Measure measure, deformation::Stress stress, std::string_view strain_name,
                         std::string_view stress_name)
    : measure_(measure), stress_(stress) {
  const auto [from, to] =
      tensor_pair_of(law, join("The strain measure ", name_of(measure)), strain_name, stress_name, Changes::refused);
  const Variable& strain = law.variables(Kind::input)[from];
  const std::size_t outputs = law.variables(Kind::output).size();
  taken_.push_back({from, {gradient_name, "R2", strain.dtype, {3, 3}, 0}});
  made_.push_back({outputs, strain, -1, 0});
  Variable made{join(name_of(stress), "_stress"), "SR2", strain.dtype, {6}, 0};
  if (stress == deformation::Stress::pk1) made = {made.name, "R2", made.dtype, {3, 3}, 0};
  made_.push_back({outputs + 1, made, static_cast<std::int64_t>(to), 0});
}

Change::Refusal LargeStrain::before(Point& point, bool with_slopes) const {
  const Matrix gradient = array_of<9>(point.taken[0]);
  const Deformation of(measure_, gradient);
  assign(point.law_inputs[0], of.strain(), 6);
  if (with_slopes) point.of_input[0].set(6, 9, of.strain_slope().data());
  const double volume = deformation::determinant(gradient);
  if (volume > 0) return {};
  return {join("the determinant of '", gradient_name, "' is ", log::scientific(volume),
               "; expected one above 0, of a material that is not turned inside out."),
          true};
}

void LargeStrain::after(Point& point, bool with_slopes) const {
  const Deformation of(measure_, array_of<9>(point.taken[0]));
  const Six of_law = array_of<6>(point.law_outputs[1]);
  const std::size_t size = deformation::size_of(stress_);
  assign(point.made[0], of.strain(), 6);
  assign(point.made[1], of.stress(stress_, of_law), size);
  if (!with_slopes) return;
  const Deformation::Slopes slopes = of.stress_slopes(stress_, of_law);
  const auto of_strain = of.strain_slope();
  point.of_input[0].set(6, 9, of_strain.data());
  point.direct[0].set(6, 9, of_strain.data());
  point.of_law[1].set(size, 6, slopes.by_law.data());
  point.direct[1].set(size, 9, slopes.by_gradient.data());
}

}  // namespace neml2_capi::model
