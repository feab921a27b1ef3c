// The eight-node hexahedron with 2 x 2 x 2 Gauss points and a mean dilatation.
#pragma once

#include <Eigen/Core>
#include <Eigen/LU>
#include <array>
#include <cmath>
#include <stdexcept>

#include "mesh.h"

namespace fem {

constexpr int NODES = 8, DOFS = 3 * NODES, GAUSS_POINTS = 8;

/// Where the strain is taken, from the displacements of the element's nodes: strain = b * u, with u = (x, y, z of the
/// first node, of the second, ...); and the volume that the point stands for.
struct GaussPoint {
  Eigen::Matrix<double, 6, DOFS> b;
  double volume;
};

/// Place of the trace of the strain: the whole element (B-bar), or the point itself, which locks.
enum class Dilatation { MEAN, LOCAL };

using Element = std::array<GaussPoint, GAUSS_POINTS>;
using Gradients = Eigen::Matrix<double, NODES, 3>;

/// The corners of the reference cube, in the order of a Hexahedron. Gauss points lie towards them, in the same order.
inline Eigen::Matrix<double, NODES, 3> corners() {
  Eigen::Matrix<double, NODES, 3> c;
  c << -1, -1, -1, 1, -1, -1, 1, 1, -1, -1, 1, -1, -1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, 1;
  return c;
}

/// Derivatives of the trilinear shape functions N_a = prod_i (1 + c_ai xi_i) / 8 in the reference cube.
inline Gradients reference_gradients(const Point& xi) {
  const Gradients c = corners();
  Gradients gradients;
  for (int a = 0; a < NODES; ++a) {
    const Eigen::Array3d factor = 1 + c.row(a).transpose().array() * xi.array();
    gradients.row(a) << c(a, 0) * factor[1] * factor[2], c(a, 1) * factor[0] * factor[2],
        c(a, 2) * factor[0] * factor[1];
  }
  return gradients / 8;
}

/// The strain-displacement matrix, from the gradients of the shape functions and their means over the element.
///
/// Its rows give the strain as the model wants it, in Mandel notation: xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2)
/// xy. A shear strain is (du_y/dz + du_z/dy) / 2, so that its row has the factor sqrt(2) / 2. In this notation the
/// product of two vectors of 6 equals the tensors' product: b^T * stress is the nodal force, and b^T * tangent * b the
/// stiffness, with what the model gives and no conversion on the way. (With engineering shear, as in Voigt notation,
/// stress and strain need different factors, and the tangent both.)
///
/// The trace of the strain is replaced by its mean over the element (B-bar: T.J.R. Hughes, Generalization of selective
/// integration procedures to anisotropic and nonlinear media, Int. J. Numer. Meth. Eng. 15 (1980) 1413-1418). Plastic
/// flow keeps the volume; eight points that each forbid a change of volume leave 24 displacements too little freedom,
/// and the element locks. One such constraint per element is borne.
inline Eigen::Matrix<double, 6, DOFS> strain_displacement(const Gradients& gradients, const Gradients& mean) {
  const double shear = std::sqrt(0.5);
  Eigen::Matrix<double, 6, DOFS> b;
  for (int a = 0; a < NODES; ++a) {
    const double x = gradients(a, 0), y = gradients(a, 1), z = gradients(a, 2);
    Eigen::Matrix<double, 6, 3> rows;
    rows << x, 0, 0,              //
        0, y, 0,                  //
        0, 0, z,                  //
        0, shear * z, shear * y,  //
        shear * z, 0, shear * x,  //
        shear * y, shear * x, 0;
    rows.topRows<3>().rowwise() += (mean.row(a) - gradients.row(a)) / 3;
    b.middleCols<3>(3 * a) = rows;
  }
  return b;
}

/// @throws std::invalid_argument if the element is folded over, or its nodes are not in the order of a Hexahedron
inline Element integrate(const Mesh& mesh, const Hexahedron& nodes, Dilatation dilatation) {
  Gradients positions;
  for (int a = 0; a < NODES; ++a) positions.row(a) = mesh.nodes[std::size_t(nodes[std::size_t(a)])];

  Element element;
  std::array<Gradients, GAUSS_POINTS> gradients;
  Gradients mean = Gradients::Zero();
  double volume = 0;
  for (std::size_t g = 0; g < GAUSS_POINTS; ++g) {
    const Gradients reference = reference_gradients(corners().row(Eigen::Index(g)) / std::sqrt(3.0));
    const Eigen::Matrix3d jacobian = positions.transpose() * reference;  // dx_i / dxi_j
    gradients[g] = reference * jacobian.inverse();
    element[g].volume = jacobian.determinant();  // all weights are 1
    if (!(element[g].volume > 0)) throw std::invalid_argument("An element of the mesh has no volume at a Gauss point.");
    mean += element[g].volume * gradients[g];
    volume += element[g].volume;
  }
  mean /= volume;
  for (std::size_t g = 0; g < GAUSS_POINTS; ++g)
    element[g].b = strain_displacement(gradients[g], dilatation == Dilatation::MEAN ? mean : gradients[g]);
  return element;
}

}  // namespace fem
