// The groups of unknowns, givens and residuals of an implicit segment, side by side in one vector, and the blocks of
// derivatives between them.
//
// A group that keeps its sub-batch axes stands site by site, with a piece of each variable in every site; another stands
// variable by variable. A block with respect to a group with sites has a matrix for each: (sites, rows, columns). The
// sites of two such groups are the same ones, and do not depend on each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "capi/artifact/metadata.h"

namespace neml2_capi::kernels {

struct Group {
  std::int64_t first = 0;  // component of the vector
  std::int64_t sites = 1, width = 0;
  std::int64_t size() const { return sites * width; }
};

// A variable in a vector of groups: `pieces` of `piece` components, each `apart` from the one before.
struct Part {
  std::string name;
  std::size_t group = 0;
  std::int64_t first = 0, pieces = 1, piece = 0, apart = 0;
  std::int64_t size() const { return pieces * piece; }
  bool is_whole() const { return piece == apart || pieces == 1; }  // its pieces stand one after the other
};

struct Groups {
  explicit Groups(const std::vector<artifact::Group>& of) {
    for (const artifact::Group& from : of) {
      Group group{size, from.block ? std::max<std::int64_t>(from.sub_batch_shape.product(), 1) : 1, 0};
      const std::size_t begin = parts.size();
      for (const artifact::Variable& variable : from.variables) {
        const std::int64_t piece = variable.point_shape().product() / group.sites;
        parts.push_back({variable.name, all.size(), size + group.width, group.sites, piece, 0});
        group.width += piece;
      }
      for (std::size_t i = begin; i < parts.size(); ++i) parts[i].apart = group.width;
      size += group.size();
      all.push_back(group);
    }
  }

  std::vector<Group> all;
  std::vector<Part> parts;
  std::int64_t size = 0;
};

// A matrix of a block of derivatives: from its component `at` on, with rows of `stride`, for rows and columns of the
// vectors, these of one site.
struct SubMatrix {
  std::int64_t at = 0, stride = 0, row = 0, rows = 0, column = 0, columns = 0, site = 0;
};

inline std::vector<SubMatrix> sub_matrices(const Group& rows, const Group& columns) {
  if (columns.sites == 1) return {{0, columns.width, rows.first, rows.size(), columns.first, columns.width, 0}};
  std::vector<SubMatrix> matrices;
  for (std::int64_t site = 0; site < columns.sites; ++site)
    matrices.push_back({site * rows.width * columns.width, columns.width,
                        rows.first + (rows.sites == 1 ? 0 : site * rows.width), rows.width,
                        columns.first + site * columns.width, columns.width, site});
  return matrices;
}

inline std::int64_t block_size(const Group& rows, const Group& columns) {
  return std::max(rows.sites, columns.sites) * rows.width * columns.width;
}

}  // namespace neml2_capi::kernels
