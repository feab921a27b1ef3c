// From displacements to strains, and from stresses and tangents to forces and stiffness.
#pragma once

#include <Eigen/SparseCore>
#include <cmath>
#include <vector>

#include "element.h"
#include "material.h"

namespace fem {

/// The displacement `dof` (3 * node + axis) is load factor times `value`.
struct Constraint {
  int dof;
  double value;
};

/// The linear system of one Newton iteration, for the displacements that are free, and what else the assembly shows.
struct LinearSystem {
  Eigen::SparseMatrix<double> stiffness;
  Eigen::VectorXd residual;   ///< forces out of balance, with the forces of the prescribed increment
  Eigen::VectorXd reactions;  ///< forces where displacements are prescribed, 0 elsewhere
  double magnitude;           ///< of the forces of the elements, before they cancel: what a residual is small against
};

class Assembly {
 public:
  Assembly(const Mesh& mesh, const std::vector<Constraint>& constraints, Dilatation dilatation = Dilatation::MEAN)
      : hexahedra_(mesh.elements), equation_(3 * mesh.nodes.size(), 0) {
    for (const Constraint& c : constraints) equation_[std::size_t(c.dof)] = PRESCRIBED;
    for (int& equation : equation_)
      if (equation != PRESCRIBED) equation = equations_++;
    for (const Hexahedron& nodes : hexahedra_) elements_.push_back(integrate(mesh, nodes, dilatation));
  }

  Eigen::Index displacements() const { return Eigen::Index(equation_.size()); }
  std::size_t points() const { return GAUSS_POINTS * elements_.size(); }
  const GaussPoint& point(std::size_t p) const { return elements_[p / GAUSS_POINTS][p % GAUSS_POINTS]; }

  /// The strains of all Gauss points, into the material's array.
  void set_strains(const Eigen::VectorXd& u, Material& material) const {
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      const ElementVector local = gather(e, u);
      for (std::size_t g = 0; g < GAUSS_POINTS; ++g) material.strain(GAUSS_POINTS * e + g) = elements_[e][g].b * local;
    }
  }

  /// Forces and stiffness from the stresses and tangents of the material. `prescribed` is the increment of the
  /// displacements that is still to be made where they are prescribed, and zero elsewhere.
  void assemble(const Material& material, const Eigen::VectorXd& prescribed, LinearSystem& system) const {
    std::vector<Eigen::Triplet<double>> entries;
    entries.reserve(elements_.size() * DOFS * DOFS);
    system.residual.setZero(equations_);
    system.reactions.setZero(displacements());
    double squares = 0;
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      ElementVector force = ElementVector::Zero();
      ElementMatrix stiffness = ElementMatrix::Zero();
      for (std::size_t g = 0; g < GAUSS_POINTS; ++g) {
        const GaussPoint& point = elements_[e][g];
        const std::size_t p = GAUSS_POINTS * e + g;
        force += point.volume * point.b.transpose() * material.stress(p);
        stiffness += point.volume * point.b.transpose() * (material.tangent(p) * point.b);
      }
      squares += force.squaredNorm();

      const ElementVector residual = force + stiffness * gather(e, prescribed);
      for (int i = 0; i < DOFS; ++i) {
        const int row = equation(e, i);
        if (row == PRESCRIBED) {
          system.reactions[dof(e, i)] += force[i];
          continue;
        }
        system.residual[row] += residual[i];
        for (int j = 0; j < DOFS; ++j)
          if (equation(e, j) != PRESCRIBED) entries.emplace_back(row, equation(e, j), stiffness(i, j));
      }
    }
    system.stiffness.resize(equations_, equations_);
    system.stiffness.setFromTriplets(entries.begin(), entries.end());
    system.magnitude = std::sqrt(squares);
  }

  /// Add an increment of the free displacements to `u`.
  void add_free(const Eigen::VectorXd& increment, Eigen::VectorXd& u) const {
    for (std::size_t i = 0; i < equation_.size(); ++i)
      if (equation_[i] != PRESCRIBED) u[Eigen::Index(i)] += increment[equation_[i]];
  }

 private:
  static constexpr int PRESCRIBED = -1;
  using ElementVector = Eigen::Matrix<double, DOFS, 1>;
  using ElementMatrix = Eigen::Matrix<double, DOFS, DOFS>;

  int dof(std::size_t e, int i) const { return 3 * hexahedra_[e][std::size_t(i / 3)] + i % 3; }
  int equation(std::size_t e, int i) const { return equation_[std::size_t(dof(e, i))]; }
  ElementVector gather(std::size_t e, const Eigen::VectorXd& u) const {
    ElementVector local;
    for (int i = 0; i < DOFS; ++i) local[i] = u[dof(e, i)];
    return local;
  }

  std::vector<Hexahedron> hexahedra_;
  std::vector<Element> elements_;
  std::vector<int> equation_;  ///< of each displacement
  int equations_ = 0;
};

}  // namespace fem
