// The groups of unknowns, givens and residuals of an implicit segment, side by side in one vector.
//
// A group that keeps its sub-batch axes stands site by site, with a piece of each variable in every site; another stands
// variable by variable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/tensor/blocks.h"

namespace neml2_capi::kernels {

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

}  // namespace neml2_capi::kernels
