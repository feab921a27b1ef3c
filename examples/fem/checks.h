// What must hold in a solution, whatever the material is.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "history.h"

namespace fem {

/// The least C with which the residuals of a step obey r_next <= C r^2, as Newton's method does near the
/// solution, with one C for all steps; a tangent that does not belong to the residuals makes them proportional,
/// r_next = c r, so that C grows as 1 / r. Left out are residuals at `round_off`, and the first iteration's residual,
/// which is of another kind: it holds the forces of the prescribed displacements.
inline double quadratic_constant(const std::vector<double>& residuals, double round_off) {
  double constant = 0;
  for (std::size_t k = 2; k < residuals.size(); ++k)
    if (residuals[k] > round_off) constant = std::max(constant, residuals[k] / (residuals[k - 1] * residuals[k - 1]));
  return constant;
}

/// The tensor of a vector in Mandel notation.
inline Eigen::Matrix3d tensor(const Vector6& m) {
  const Vector6 v = (Vector6() << m.head<3>(), m.tail<3>() * std::sqrt(0.5)).finished();
  return (Eigen::Matrix3d() << v[0], v[5], v[4], v[5], v[1], v[3], v[4], v[3], v[2]).finished();
}

/// The integral of the stress over the body, N mm.
inline Eigen::Matrix3d stress_integral(const Assembly& assembly, const Material& material) {
  Eigen::Matrix3d sum = Eigen::Matrix3d::Zero();
  for (std::size_t p = 0; p < assembly.points(); ++p) sum += assembly.point(p).volume * tensor(material.stress(p));
  return sum;
}

/// How far the reactions are from balance, and from balance with the stresses, relative to the stress in the body. By
/// Gauss' theorem the sum of f x^T over the nodes is the integral of the stress; since that is symmetric, no moment
/// results. Of a bar between the planes y = 0 and y = h it says that the force on its end times h is the integral of
/// stress_yy: of the force on each section, over the sections.
inline double imbalance(const Mesh& mesh, const Assembly& assembly, const Material& material,
                        const Eigen::VectorXd& reactions) {
  Eigen::Vector3d resultant = Eigen::Vector3d::Zero();
  Eigen::Matrix3d moments = Eigen::Matrix3d::Zero();
  double sum = 0;
  for (std::size_t a = 0; a < mesh.nodes.size(); ++a) {
    const Eigen::Vector3d force = reactions.segment<3>(3 * Eigen::Index(a));
    resultant += force;
    moments += force * mesh.nodes[a].transpose();
    sum += force.norm();
  }
  double stress = 0;
  for (std::size_t p = 0; p < assembly.points(); ++p) stress += assembly.point(p).volume * material.stress(p).norm();
  return std::max(resultant.norm() / sum, (moments - stress_integral(assembly, material)).norm() / stress);
}

/// The patch test, over a history with plastic flow: if the displacements on the faces of a body are a linear
/// function of place, so they are everywhere, and the stress is the one of a single point with that strain, however the
/// elements are distorted. Returns the largest relative difference of a stress in any step.
inline double patch_test(const neml2::Model& model) {
  const Mesh mesh = distorted_cube(3);
  Eigen::Matrix3d gradient;  // six distinct components of strain
  gradient << -2.2, 1.5, -0.7, 0.4, 5, 2.1, 1.3, -0.6, -1.6;
  gradient *= 1e-3;
  const Eigen::Matrix3d e = (gradient + gradient.transpose()) / 2;
  const double root = std::sqrt(2.0);
  const Vector6 strain =
      (Vector6() << e(0, 0), e(1, 1), e(2, 2), root * e(1, 2), root * e(0, 2), root * e(0, 1)).finished();

  std::vector<Constraint> faces;
  for (int axis = 0; axis < 3; ++axis)
    for (const double value : {0.0, 1.0})
      for (const int a : nodes_on_plane(mesh, axis, value)) {
        const Eigen::Vector3d u = gradient * mesh.nodes[std::size_t(a)];
        for (int i = 0; i < 3; ++i) faces.push_back({3 * a + i, u[i]});
      }

  const LoadPath path({{10, 1}, {15, 1}, {25, -0.5}});
  const Assembly assembly(mesh, faces);
  Material material(model, assembly.points()), point(model, 1);
  Newton newton;
  double difference = 0;
  follow(
      path, TimeControl{}, assembly, faces, material, newton,
      [&](const StepReport& step) {
        point.strain(0) = path.factor(step.time) * strain;
        point.evaluate(step.time);
        const Vector6 expected = point.stress(0);
        for (std::size_t p = 0; p < material.points(); ++p)
          difference = std::max(difference, (material.stress(p) - expected).norm() / expected.norm());
        point.commit();
      },
      [](const StepReport&) {});
  return difference;
}

}  // namespace fem
