#include "capi/segments/groups.h"

#include <algorithm>
#include <cstring>

#include "capi/base/error.h"
#include "capi/graph/algebra.h"
#include "capi/segments/graph_call.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {

Dims row_shape(const artifact::Group& group) {
  Dims shape = group.block ? group.sub_batch_shape : Dims();
  std::int64_t total = 0;
  for (const artifact::Variable& variable : group.variables) total += variable.point_shape().product();
  shape.push_back(total / std::max<std::int64_t>(shape.product(), 1));
  return shape;
}

std::vector<Dims> row_shapes(const std::vector<ValueGroup>& groups) {
  std::vector<Dims> shapes;
  for (const ValueGroup& group : groups) shapes.push_back(group.row_shape());
  return shapes;
}

void expect_operands(const Package& package, const std::vector<ValueGroup>& unknowns,
                     const std::vector<ValueGroup>& givens) {
  std::size_t i = 0;
  for (const auto* groups : {&unknowns, &givens})
    for (const ValueGroup& group : *groups)
      expect_taken(package, i++, group.row_shape(), join("the group of ", group.names()));
}

ValueGroup::ValueGroup(const artifact::Group& group, Role role, Scope& scope, const std::string& who)
    : row_shape_(model::row_shape(group)) {
  outer_ = group.block ? group.sub_batch_shape.product() : 1;
  for (const artifact::Variable& variable : group.variables) {
    const Dims shape = variable.point_shape();
    values_.push_back(role == Role::unknown ? scope.provide(variable.name)
                                            : scope.require(variable.name, "a given of " + who));
    scope.declare(values_.back(), shape, scope.dtype(), who);
    point_shapes_.push_back(shape);
    add_name(names_, variable.name);
    sizes_.push_back(shape.product() / std::max<std::int64_t>(outer_, 1));
  }
}

Tensor ValueGroup::pack(const Chunk& chunk, DType dtype) const {
  if (!chunk.device.is_host()) return pack_on_device(chunk);
  Tensor packed = Tensor::empty(dtype, Dims{chunk.points}.then(row_shape_));
  const std::int64_t item = packed.itemsize(), total = row_shape_.back() * item;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::int64_t piece = sizes_[i] * item;
    const char* from = chunk.values[values_[i]].data_as<const char>();
    for (std::int64_t k = 0; k < chunk.points * outer_; ++k)
      std::memcpy(packed.data_as<char>() + k * total + offset, from + k * piece, static_cast<std::size_t>(piece));
    offset += piece;
  }
  return packed;
}

// Each value gets memory of its own.
void ValueGroup::unpack(const Tensor& group, Chunk& chunk) const {
  const Tensor rows = shaped(group, {chunk.points, outer_, row_shape_.back()});
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Tensor value = part(rows, 2, offset, sizes_[i]).copy();
    chunk.values[values_[i]] = shaped(value, Dims{chunk.points}.then(point_shapes_[i]));
    offset += sizes_[i];
  }
}

Tensor ValueGroup::pack_on_device(const Chunk& chunk) const {
  Vector<Tensor> pieces;
  for (std::size_t i = 0; i < values_.size(); ++i)
    pieces.push_back(shaped(chunk.values[values_[i]], {chunk.points, outer_, sizes_[i]}));
  return shaped(algebra::joined(pieces, 2), Dims{chunk.points}.then(row_shape_));
}

}  // namespace neml2_capi::model
