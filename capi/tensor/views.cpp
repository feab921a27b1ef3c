#include "capi/tensor/views.h"

#include <cstring>
#include <utility>

#include "capi/base/error.h"
#include "capi/tensor/blocks.h"

namespace neml2_capi {

Tensor shaped(const Tensor& tensor, const Dims& sizes) {
  const Tensor dense = tensor.row_major();
  return Tensor(dense.storage(), dense.dtype(), sizes, sizes.row_major(), dense.offset());
}

Tensor expanded(const Tensor& tensor, const Dims& sizes) {
  Dims strides = sizes;
  const std::int64_t leading = sizes.size() - tensor.ndim();
  for (std::int64_t i = 0; i < sizes.size(); ++i)
    strides[i] = i < leading || tensor.sizes()[i - leading] != sizes[i] ? 0 : tensor.strides()[i - leading];
  return Tensor(tensor.storage(), tensor.dtype(), sizes, strides, tensor.offset());
}

Tensor part(const Tensor& tensor, std::int64_t axis, std::int64_t begin, std::int64_t size) {
  Dims sizes = tensor.sizes();
  sizes[axis] = size;
  return Tensor(tensor.storage(), tensor.dtype(), sizes, tensor.strides(),
                tensor.offset() + begin * tensor.strides()[axis]);
}

Tensor transpose(const Tensor& matrices) {
  Dims sizes = matrices.sizes(), strides = matrices.strides();
  const std::int64_t last = sizes.size() - 1;
  std::swap(sizes[last], sizes[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return Tensor(matrices.storage(), matrices.dtype(), sizes, strides, matrices.offset());
}

Tensor side_by_side(const Vector<Tensor>& parts) {
  if (parts.size() == 1) return parts.front().row_major();
  const Dims outer = parts.front().sizes().first(parts.front().ndim() - 1);
  std::int64_t width = 0;
  for (const Tensor& part : parts) width += part.sizes().back();
  Tensor joined = Tensor::empty(parts.front().dtype(), outer.then({width}));
  char* to = joined.data_as<char>();
  for (const Tensor& part : parts) {
    const Tensor rows = part.row_major();
    const std::int64_t bytes = rows.sizes().back() * rows.itemsize();
    for (std::int64_t r = 0; r < outer.product(); ++r)
      std::memcpy(to + r * width * joined.itemsize(), rows.data_as<const char>() + r * bytes,
                  static_cast<std::size_t>(bytes));
    to += bytes;
  }
  return joined;
}

namespace {

std::vector<Group> groups_of(const std::vector<Dims>& shapes, std::int64_t& size) {
  std::vector<Group> groups;
  size = 0;
  for (const Dims& shape : shapes) {
    groups.push_back({size, shape.first(shape.size() - 1).product(), shape.back()});
    size += shape.product();
  }
  return groups;
}

}  // namespace

Tensor matrix_of(const Vector<Tensor>& blocks, const std::vector<Dims>& rows, const std::vector<Dims>& columns) {
  std::int64_t height = 0, width = 0;
  const std::vector<Group> down = groups_of(rows, height), across = groups_of(columns, width);
  const std::int64_t points = blocks.front().sizes()[0];
  Tensor matrix = Tensor::zeros(blocks.front().dtype(), {points, height, width});
  const std::int64_t item = matrix.itemsize();
  std::size_t next = 0;
  for (const Group& row : down)
    for (const Group& column : across) {
      const Tensor block = blocks[next++].row_major();
      const std::int64_t size = block_size(row, column);
      if (block.numel() != points * size)
        throw Error(NEML2_ERROR_ARTIFACT, "matrix",
                    join("A package returns a block of ", block.numel(), " derivatives for ", points,
                         " points, which have ", row.size(), " by ", column.size(), "."));
      for (const SubMatrix& part : sub_matrices(row, column))
        for (std::int64_t p = 0; p < points; ++p)
          for (std::int64_t r = 0; r < part.rows; ++r)
            std::memcpy(matrix.data_as<char>() + ((p * height + part.row + r) * width + part.column) * item,
                        block.data_as<const char>() + (p * size + part.at + r * part.stride) * item,
                        static_cast<std::size_t>(part.columns * item));
    }
  return matrix;
}

}  // namespace neml2_capi
