// Packing of named values into the groups of a residual, and back.
#pragma once

#include <string>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/newton/system.h"
#include "capi/segments/segment.h"

namespace neml2_capi::model {

// Returns the shape of one row of a group.
Dims row_shape(const artifact::Group& group);

class ValueGroup;
std::vector<Dims> row_shapes(const std::vector<ValueGroup>& groups);

// Throws NEML2_ERROR_ARTIFACT unless the first inputs of a package are these groups.
void expect_operands(const Package& package, const std::vector<ValueGroup>& unknowns,
                     const std::vector<ValueGroup>& givens);

// Group of values that stand side by side along the last axis: (points, sub-batch axes..., sum of base sizes) if
// it keeps its sub-batch axes (block), else (points, sum of sizes).
class ValueGroup {
 public:
  enum class Role { given, unknown };  // what the segments before make, or what this one makes
  ValueGroup(const artifact::Group& group, Role role, Scope& scope, const std::string& who);

  // Returns the shape of one row of the group.
  const Dims& row_shape() const { return row_shape_; }
  const std::vector<std::size_t>& values() const { return values_; }
  const Dims& point_shape(std::size_t i) const { return point_shapes_[i]; }
  // Returns the names of its values, for a message.
  const std::string& names() const { return names_; }

  Tensor pack(const Chunk& chunk, DType dtype) const;
  void unpack(const Tensor& group, Chunk& chunk) const;

 private:
  Tensor pack_on_device(const Chunk& chunk) const;

  // Number of pieces of a value in one row; the piece of value i has sizes_[i] elements.
  std::int64_t outer_ = 1;
  std::vector<std::size_t> values_;
  Vector<std::int64_t> sizes_;
  std::vector<Dims> point_shapes_;
  std::string names_;
  Dims row_shape_;
};

}  // namespace neml2_capi::model
