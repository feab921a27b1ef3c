// Strain measures around a law: closed forms, derivatives beside differences, and stretches that are nearly equal.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "capi/deformation/measure.h"

namespace {

using namespace neml2_capi::deformation;

constexpr Measure measures[] = {Measure::logarithmic, Measure::green_lagrange, Measure::corotational};
constexpr Stress stresses[] = {Stress::pk1, Stress::cauchy, Stress::pk2, Stress::kirchhoff};
constexpr double lame = 1.2, shear = 0.8;

void expect_near(double value, double expected, double tolerance, const char* what) {
  if (std::abs(value - expected) <= tolerance * (1 + std::abs(expected))) return;
  std::fprintf(stderr, "failed: %s: %.17g, expected %.17g\n", what, value, expected);
  std::exit(1);
}

Six elastic(const Six& strain) {
  Six stress;
  for (std::size_t i = 0; i < 6; ++i)
    stress[i] = 2 * shear * strain[i] + (i < 3 ? lame * (strain[0] + strain[1] + strain[2]) : 0);
  return stress;
}

Matrix rotation(double angle, std::size_t axis) {
  const std::size_t i = (axis + 1) % 3, j = (axis + 2) % 3;
  Matrix r = unit;
  r[4 * i] = r[4 * j] = std::cos(angle);
  r[3 * j + i] = std::sin(angle);
  r[3 * i + j] = -r[3 * j + i];
  return r;
}

const Matrix any_rotation = multiply(multiply(rotation(0.7, 0), rotation(-1.1, 1)), rotation(0.4, 2));

// Stretches along axes that are turned, and then the whole turned.
Matrix stretched(double a, double b, double c) {
  const Matrix axes = multiply(rotation(0.3, 2), rotation(0.9, 0));
  return multiply(any_rotation, multiply(multiply(axes, {a, 0, 0, 0, b, 0, 0, 0, c}), transpose(axes)));
}

Dense<9, 1> stress_of(Measure measure, Stress wanted, const Matrix& f) {
  const Deformation of(measure, f);
  return of.stress(wanted, elastic(of.strain()));
}

// Kirchhoff's stress of Hencky elasticity in simple shear: the logarithm of V is asinh(g / 2) in axes turned by
// atan(2 / g) / 2.
void simple_shear_has_its_closed_form() {
  for (const double g : {1e-9, 0.1, 1.0, 2.0}) {
    const Matrix f = {1, g, 0, 0, 1, 0, 0, 0, 1};
    const double size = 2 * shear * std::asinh(g / 2), root = std::sqrt(4 + g * g);
    const Dense<9, 1> tau = stress_of(Measure::logarithmic, Stress::kirchhoff, f);
    expect_near(tau[0], size * g / root, 1e-14, "Hencky's normal stress in shear");
    expect_near(tau[1], -size * g / root, 1e-14, "Hencky's other normal stress");
    expect_near(tau[5] / root_of_2 / g, size * 2 / root / g, 1e-13, "Hencky's shear stress");
    const Dense<9, 1> p = stress_of(Measure::green_lagrange, Stress::pk1, f);
    const double s11 = lame * g * g / 2, s22 = s11 + shear * g * g, s12 = shear * g;
    const double expected[] = {s11 + g * s12, s12 + g * s22, 0, s12, s22, 0, 0, 0, s11};
    for (std::size_t i = 0; i < 9; ++i) expect_near(p[i], expected[i], 1e-14, "St. Venant-Kirchhoff in shear");
  }
}

void stretching_has_its_closed_form() {
  for (const double a : {0.2, 1.0, 3.0}) {
    const double b = 1 / std::sqrt(a), e = std::log(a);
    const Matrix f = {a, 0, 0, 0, b, 0, 0, 0, b};
    const double t = 2 * shear * e;
    expect_near(stress_of(Measure::logarithmic, Stress::pk1, f)[0], t / a, 1e-13, "Hencky's P");
    expect_near(stress_of(Measure::logarithmic, Stress::pk2, f)[1], -t / 2 / (b * b), 1e-13, "Hencky's S");
    const double green = (a * a - 1) / 2, across = (b * b - 1) / 2;
    const double s = 2 * shear * green + lame * (green + 2 * across);
    expect_near(stress_of(Measure::green_lagrange, Stress::cauchy, f)[0], a * a * s, 1e-13, "Cauchy's of S");
  }
}

void a_turn_of_corotational_stress_is_cauchys() {
  const Matrix f = stretched(1.3, 0.8, 1.1);
  const Deformation straight(Measure::corotational, multiply(transpose(any_rotation), f));
  const Six t = elastic(straight.strain());
  const Matrix expected = multiply(multiply(any_rotation, to_matrix(t)), transpose(any_rotation));
  const Six six = to_six(expected);
  const Dense<9, 1> cauchy = stress_of(Measure::corotational, Stress::cauchy, f);
  for (std::size_t i = 0; i < 6; ++i) expect_near(cauchy[i], six[i], 1e-14, "Cauchy's stress is turned");
}

void the_laws_stress_is_found_again() {
  const Matrix f = {1.1, 0.9, 0.2, -0.3, 0.8, 0.1, 0.05, 0.4, 1.4};
  for (const Measure measure : measures)
    for (const Stress stress : stresses) {
      const Deformation of(measure, f);
      const Six t = elastic(of.strain()), again = of.stress_of_law(stress, of.stress(stress, t));
      for (std::size_t i = 0; i < 6; ++i) expect_near(again[i], t[i], 1e-13, "the law's stress");
    }
}

// A rotation after the deformation, of 90 degrees too, turns all stresses and changes no strain.
void stresses_are_objective() {
  const Matrix f = {1.1, 0.9, 0.2, -0.3, 0.8, 0.1, 0.05, 0.4, 1.4};
  for (const Matrix& q : {rotation(std::acos(0.0), 2), any_rotation})
    for (const Measure measure : measures) {
      const Six before = Deformation(measure, f).strain(), after = Deformation(measure, multiply(q, f)).strain();
      for (std::size_t i = 0; i < 6; ++i) expect_near(after[i], before[i], 1e-14, "a strain of the turned material");
      const Dense<9, 1> p = stress_of(measure, Stress::pk1, f),
                        of_turned = stress_of(measure, Stress::pk1, multiply(q, f));
      const Matrix turned = multiply(q, p);
      for (std::size_t i = 0; i < 9; ++i) expect_near(of_turned[i], turned[i], 1e-13, "P is turned");
    }
}

// d stress / dF by both slopes, beside differences of fourth order.
void check_slopes(const Matrix& f, const char* what) {
  for (const Measure measure : measures)
    for (const Stress wanted : stresses) {
      const Deformation of(measure, f);
      const Six strain = of.strain();
      const auto [by_law, by_gradient] = of.stress_slopes(wanted, elastic(strain));
      Dense<6, 6> stiffness;
      for (std::size_t j = 0; j < 6; ++j) {
        Six basis{};
        basis[j] = 1;
        const Six column = elastic(basis);
        for (std::size_t i = 0; i < 6; ++i) stiffness[6 * i + j] = column[i];
      }
      const Dense<9, 9> through = product<9, 6, 9>(by_law, product<6, 6, 9>(stiffness, of.strain_slope()));
      for (std::size_t j = 0; j < 9; ++j) {
        constexpr double h = 1e-3;
        const auto at = [&](double step) {
          Matrix moved = f;
          moved[j] += step * h;
          return stress_of(measure, wanted, moved);
        };
        const auto a = at(-2), b = at(-1), c = at(1), d = at(2);
        for (std::size_t i = 0; i < size_of(wanted); ++i)
          expect_near(through[9 * i + j] + by_gradient[9 * i + j], (a[i] - 8 * b[i] + 8 * c[i] - d[i]) / (12 * h), 1e-9,
                      what);
      }
    }
}

void slopes_are_those_of_differences() {
  check_slopes({1.1, 0.9, 0.2, -0.3, 0.8, 0.1, 0.05, 0.4, 1.4}, "slopes of a large deformation");
  check_slopes(unit, "slopes at rest");
  for (const double gap : {1e-3, 1e-5, 1e-8, 1e-10, 1e-12, 1e-14, 1e-16, 0.0}) {
    check_slopes(stretched(1.2, 1.2 + gap, 0.9), "two stretches nearly equal");
    check_slopes(stretched(1.1, 1.1 + gap, 1.1 - gap), "three stretches nearly equal");
    check_slopes(stretched(1 + gap, 1, 1 + 2 * gap), "all stretches nearly 1");
  }
}

void differences_do_not_cancel() {
  for (double gap = 1; gap > 1e-17; gap /= 3)
    for (const double a : {0.01, 1.0, 9.0}) {
      const double b = a * (1 + gap), c = a * (1 + 0.3 * gap);
      const long double la = a, lb = b, lc = c;
      const auto first = [](long double x, long double y) {
        const long double d = (x - y) / y;
        return (std::abs(d) < 1e-9L ? 1 - d / 2 + d * d / 3 : std::log1p(d) / d) / (2 * y);
      };
      expect_near(difference_of_logarithm(a, b) * a, double(first(la, lb) * la), 3e-16, "a first difference");
      if (gap > 1e-3)
        expect_near(difference_of_logarithm(a, b, c) * a * a,
                    double((first(lb, lc) - first(lc, la)) / (lb - la) * la * la), 5e-14, "a second difference");
      if (gap < 1e-5)
        expect_near(difference_of_logarithm(a, b, c) * a * a, -0.25 * (1 - 2 * 1.3 / 3 * gap), 1e-9,
                    "a second difference is half the second derivative");
    }
}

// Rates of deformation and of Green's strain give the slopes of elements: at rest both are the law's own.
void motions_give_the_laws_stiffness_at_rest() {
  for (const Measure measure : measures) {
    const Deformation rest(measure, unit);
    for (const auto& motion : {motion_of_rate(unit), motion_of_green(unit)}) {
      const Dense<6, 6> identity = product<6, 9, 6>(rest.strain_slope(), motion);
      for (std::size_t i = 0; i < 36; ++i) expect_near(identity[i], i % 7 == 0 ? 1 : 0, 1e-15, "d strain");
    }
  }
}

}  // namespace

int main() {
  simple_shear_has_its_closed_form();
  stretching_has_its_closed_form();
  a_turn_of_corotational_stress_is_cauchys();
  the_laws_stress_is_found_again();
  stresses_are_objective();
  slopes_are_those_of_differences();
  differences_do_not_cancel();
  motions_give_the_laws_stiffness_at_rest();
  return 0;
}
