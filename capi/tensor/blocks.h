// Blocks of derivatives between groups that stand side by side in one vector.
//
// A group with sub-batch sites stands site by site. A block with respect to such a group has a matrix for each site:
// (sites, rows, columns). The sites of two groups are the same ones, and do not depend on each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace neml2_capi {

struct Group {
  std::int64_t first = 0;  // component of the vector
  std::int64_t sites = 1, width = 0;
  std::int64_t size() const { return sites * width; }
};

// A matrix of a block: from its component `at` on, with rows of `stride`, for rows and columns of the vectors, these of
// one site.
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

}  // namespace neml2_capi
