// A solution as a legacy VTK file, for ParaView and the like.
#pragma once

#include <Eigen/Core>
#include <fstream>
#include <stdexcept>
#include <string>

#include "assembly.h"
#include "material.h"

namespace fem {

/// Displacements of the nodes; stress (xx, yy, zz, xy, yz, xz) and equivalent plastic strain of the elements, as means
/// over their Gauss points. @throws std::runtime_error if the file cannot be written
inline void write_vtk(const std::string& path, const Mesh& mesh, const Eigen::VectorXd& displacements,
                      const Material& material) {
  std::ofstream file(path);
  file << "# vtk DataFile Version 3.0\nneml2_capi: examples/fem\nASCII\nDATASET UNSTRUCTURED_GRID\n";
  file << "POINTS " << mesh.nodes.size() << " double\n";
  for (const Point& x : mesh.nodes) file << x.transpose() << '\n';
  file << "CELLS " << mesh.elements.size() << ' ' << (NODES + 1) * mesh.elements.size() << '\n';
  for (const Hexahedron& nodes : mesh.elements) {
    file << NODES;
    for (const int a : nodes) file << ' ' << a;
    file << '\n';
  }
  file << "CELL_TYPES " << mesh.elements.size() << '\n';
  for (std::size_t e = 0; e < mesh.elements.size(); ++e) file << "12\n";  // VTK_HEXAHEDRON

  file << "POINT_DATA " << mesh.nodes.size() << "\nVECTORS displacement double\n";
  for (Eigen::Index i = 0; i < displacements.size(); i += 3) file << displacements.segment<3>(i).transpose() << '\n';
  file << "CELL_DATA " << mesh.elements.size() << "\nFIELD results 2\nstress 6 " << mesh.elements.size() << " double\n";
  for (std::size_t e = 0; e < mesh.elements.size(); ++e) {
    Vector6 mean = Vector6::Zero();
    for (std::size_t g = 0; g < GAUSS_POINTS; ++g) mean += material.stress(GAUSS_POINTS * e + g) / GAUSS_POINTS;
    const Vector6 shear = mean * std::sqrt(0.5);  // of Mandel notation
    file << mean.head<3>().transpose() << ' ' << shear[5] << ' ' << shear[3] << ' ' << shear[4] << '\n';
  }
  file << "equivalent_plastic_strain 1 " << mesh.elements.size() << " double\n";
  for (std::size_t e = 0; e < mesh.elements.size(); ++e) {
    double mean = 0;
    for (std::size_t g = 0; g < GAUSS_POINTS; ++g) mean += material.plastic_strain(GAUSS_POINTS * e + g) / GAUSS_POINTS;
    file << mean << '\n';
  }
  file.flush();
  if (!file)
    throw std::runtime_error(path + " cannot be written: give --vtk the beginning of a path in a folder that exists.");
}

}  // namespace fem
