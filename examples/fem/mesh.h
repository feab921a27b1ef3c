// A mesh of eight-node hexahedra, mapped from a structured grid.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace fem {

using Point = Eigen::Vector3d;

/// Nodes of an element: counterclockwise around the lower face, then the same around the upper one (as VTK wants it).
using Hexahedron = std::array<int, 8>;

struct Mesh {
  std::vector<Point> nodes;
  std::vector<Hexahedron> elements;
};

/// `n[0] * n[1] * n[2]` elements over the unit cube, whose points `map` takes to their places. It must keep the
/// orientation: right-handed stays right-handed.
template <typename Map>
Mesh structured_mesh(const std::array<int, 3>& n, Map map) {
  Mesh mesh;
  for (int k = 0; k <= n[2]; ++k)
    for (int j = 0; j <= n[1]; ++j)
      for (int i = 0; i <= n[0]; ++i)
        mesh.nodes.push_back(map(Point(double(i) / n[0], double(j) / n[1], double(k) / n[2])));

  const auto node = [&](int i, int j, int k) { return i + (n[0] + 1) * (j + (n[1] + 1) * k); };
  for (int k = 0; k < n[2]; ++k)
    for (int j = 0; j < n[1]; ++j)
      for (int i = 0; i < n[0]; ++i)
        mesh.elements.push_back({node(i, j, k), node(i + 1, j, k), node(i + 1, j + 1, k), node(i, j + 1, k),
                                 node(i, j, k + 1), node(i + 1, j, k + 1), node(i + 1, j + 1, k + 1),
                                 node(i, j + 1, k + 1)});
  return mesh;
}

/// A plate with a hole in its middle; lengths in mm.
struct Plate {
  double radius = 5, half_width = 15, half_height = 20, half_thickness = 2;
};

/// One eighth of the plate, x, y, z >= 0; the planes through the origin are planes of symmetry. `n`: elements from the
/// hole outwards, around the quarter of the hole (an even number, so that the corner of the plate is a node), and
/// through the half thickness.
inline Mesh plate_with_hole(const Plate& plate, const std::array<int, 3>& n) {
  const double quarter = std::acos(0.0);
  return structured_mesh(n, [&](const Point& s) {
    const double angle = quarter * s[1];
    const Point hole(plate.radius * std::cos(angle), plate.radius * std::sin(angle), 0);
    const Point edge(plate.half_width * std::min(1.0, 2 - 2 * s[1]), plate.half_height * std::min(1.0, 2 * s[1]), 0);
    const double outwards = s[0] * (1 + s[0]) / 2;  // smaller elements at the hole, where the stress concentrates
    return Point((1 - outwards) * hole + outwards * edge + Point(0, 0, plate.half_thickness * s[2]));
  });
}

/// The unit cube, with `n` elements along each edge, of which no two have the same shape.
inline Mesh distorted_cube(int n) {
  return structured_mesh({n, n, n}, [n](const Point& s) {
    const double bubble = 64 * (s.array() * (1 - s.array())).prod();  // 0 on the faces
    const Point away(std::sin(7 * s[0] + 3 * s[1]), std::sin(5 * s[1] + 2 * s[2]), std::sin(9 * s[2] + 4 * s[0]));
    return Point(s + 0.3 / n * bubble * away);
  });
}

/// The nodes on the plane where coordinate `axis` is `value`; lengths below 1e-9 count as round-off.
inline std::vector<int> nodes_on_plane(const Mesh& mesh, int axis, double value) {
  std::vector<int> found;
  for (int a = 0; a < int(mesh.nodes.size()); ++a)
    if (std::abs(mesh.nodes[std::size_t(a)][axis] - value) < 1e-9) found.push_back(a);
  return found;
}

}  // namespace fem
