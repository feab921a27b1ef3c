// The laws of tests/models/isotropic_hardening.i and examples/models/viscoplastic.i by hand: the residual of a backward
// Euler step and its analytic Jacobian. MPa and s; symmetric tensors in Mandel notation, so that a:b is a dot product.
//
//   n    = dev(stress - X) / |dev(stress - X)|               flow direction
//   f    = |dev(stress - X)| - sqrt(2/3) (yield + h(p))      overstress
//   flow = dt <f / eta>^m                                    flow of the step
//   dstress = C : (dstrain - flow n)
//   dp      = sqrt(2/3) flow
//   dX_k    = (2/3 C_k n - g_k X_k) flow - dt A_k |X_k|^(a_k - 1) X_k
#pragma once

#include "newton.h"

namespace benchmark {

using Symmetric = Vector<6>;

inline double dot(const Symmetric& a, const Symmetric& b) {
  double sum = 0;
  for (int i = 0; i < 6; ++i) sum += a[i] * b[i];
  return sum;
}

// Isotropic elasticity, E = 200e3 and nu = 0.3.
constexpr double young = 200e3, poisson = 0.3;
constexpr double shear = young / (2 * (1 + poisson)), lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson));

inline Symmetric elastic(const Symmetric& strain) {
  const double pressure = lame * (strain[0] + strain[1] + strain[2]);
  Symmetric stress;
  for (int i = 0; i < 6; ++i) stress[i] = 2 * shear * strain[i] + (i < 3 ? pressure : 0);
  return stress;
}

// What the flow of a step is at some overstress tensor, and how it changes.
struct Flow {
  static constexpr double root = 0.81649658092772603;  // sqrt(2/3)
  static constexpr double yield = 150, eta = 120, exponent = 6;

  Flow(const Symmetric& overstress, double hardening, double dt) {
    const double mean = (overstress[0] + overstress[1] + overstress[2]) / 3;
    for (int i = 0; i < 6; ++i) direction[i] = overstress[i] - (i < 3 ? mean : 0);
    // The model's square root is kept away from zero by this number.
    size = root * std::sqrt(1.5 * dot(direction, direction) + 2.220446049250313e-16);
    for (double& component : direction) component /= size;
    const double f = size - root * (yield + hardening);
    if (f <= 0) return;
    amount = dt * std::pow(f / eta, exponent);
    slope = exponent * amount / f;
  }

  // d direction / d overstress, component i by j.
  double turn(int i, int j) const {
    const double deviator = (i == j) - (i < 3 && j < 3 ? 1.0 / 3 : 0);
    return (deviator - direction[i] * direction[j]) / size;
  }

  Symmetric direction;
  double size;
  double amount = 0;
  double slope = 0;  // d amount / d f
};

// The increments of one step.
struct Step {
  Symmetric elastic_stress;  // C : dstrain
  double dt;
};

// u = stress, p
struct IsotropicHardening {
  static constexpr int size = 7;
  static constexpr double modulus = 2000;
  Step step;
  Vector<size> old;

  void operator()(const Vector<size>& u, Vector<size>& r, Matrix<size>& jacobian) const {
    Symmetric stress;
    for (int i = 0; i < 6; ++i) stress[i] = u[i];
    const Flow flow(stress, modulus * u[6], step.dt);
    const double by_p = -Flow::root * modulus * flow.slope;  // d flow / d p
    for (int i = 0; i < 6; ++i) {
      r[i] = u[i] - old[i] - step.elastic_stress[i] + 2 * shear * flow.amount * flow.direction[i];
      for (int j = 0; j < 6; ++j)
        jacobian[i][j] =
            (i == j) + 2 * shear * (flow.slope * flow.direction[i] * flow.direction[j] + flow.amount * flow.turn(i, j));
      jacobian[i][6] = 2 * shear * flow.direction[i] * by_p;
      jacobian[6][i] = -Flow::root * flow.slope * flow.direction[i];
    }
    r[6] = u[6] - old[6] - Flow::root * flow.amount;
    jacobian[6][6] = 1 - Flow::root * by_p;
  }
};

// u = stress, p, X1, X2
struct Chaboche {
  static constexpr int size = 19;
  static constexpr double saturated = 60, rate = 8;
  struct BackStress {
    double C, g, A, a;
  };
  static constexpr BackStress back[2] = {{40000, 400, 1e-6, 2.2}, {4000, 40, 1e-8, 3.2}};
  Step step;
  Vector<size> old;

  void operator()(const Vector<size>& u, Vector<size>& r, Matrix<size>& jacobian) const {
    Symmetric overstress;
    for (int i = 0; i < 6; ++i) overstress[i] = u[i] - u[7 + i] - u[13 + i];
    const double remaining = saturated * std::exp(-rate * u[6]);
    const Flow flow(overstress, saturated - remaining, step.dt);
    const double by_p = -Flow::root * rate * remaining * flow.slope;

    // The stress, and p.
    for (int i = 0; i < 6; ++i) {
      r[i] = u[i] - old[i] - step.elastic_stress[i] + 2 * shear * flow.amount * flow.direction[i];
      for (int j = 0; j < 6; ++j) {
        const double change =
            2 * shear * (flow.slope * flow.direction[i] * flow.direction[j] + flow.amount * flow.turn(i, j));
        jacobian[i][j] = (i == j) + change;
        jacobian[i][7 + j] = jacobian[i][13 + j] = -change;
      }
      jacobian[i][6] = 2 * shear * flow.direction[i] * by_p;
      jacobian[6][i] = -Flow::root * flow.slope * flow.direction[i];
      jacobian[6][7 + i] = jacobian[6][13 + i] = -jacobian[6][i];
    }
    r[6] = u[6] - old[6] - Flow::root * flow.amount;
    jacobian[6][6] = 1 - Flow::root * by_p;

    // The back stresses.
    for (int k = 0; k < 2; ++k) {
      const auto [C, g, A, a] = back[k];
      const int at = 7 + 6 * k, other = 20 - at;
      Symmetric X, towards;  // towards: d X / d flow
      for (int i = 0; i < 6; ++i) {
        X[i] = u[at + i];
        towards[i] = 2.0 / 3 * C * flow.direction[i] - g * X[i];
      }
      const double size_squared = dot(X, X) + 2.220446049250313e-16;
      const double recovery = step.dt * A * std::pow(size_squared, (a - 1) / 2);
      for (int i = 0; i < 6; ++i) {
        r[at + i] = X[i] - old[at + i] - towards[i] * flow.amount + recovery * X[i];
        for (int j = 0; j < 6; ++j) {
          const double change =
              2.0 / 3 * C * flow.amount * flow.turn(i, j) + towards[i] * flow.slope * flow.direction[j];
          jacobian[at + i][j] = -change;
          jacobian[at + i][other + j] = change;
          jacobian[at + i][at + j] =
              change + (i == j ? 1 + g * flow.amount + recovery : 0) + recovery * (a - 1) / size_squared * X[i] * X[j];
        }
        jacobian[at + i][6] = -towards[i] * by_p;
      }
    }
  }
};

}  // namespace benchmark
