#include "capi/tensor/views.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "capi/base/error.h"

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

Tensor matrix_of(const Vector<Tensor>& blocks, const std::vector<Dims>& rows, const std::vector<Dims>& columns) {
  const auto size_of = [](const std::vector<Dims>& groups) {
    std::int64_t size = 0;
    for (const Dims& group : groups) size += group.product();
    return size;
  };
  const std::int64_t points = blocks.front().sizes()[0], height = size_of(rows), width = size_of(columns);
  Tensor matrix = Tensor::zeros(blocks.front().dtype(), {points, height, width});
  const std::int64_t item = matrix.itemsize();
  std::int64_t top = 0;
  for (std::size_t i = 0; i < rows.size(); top += rows[i++].product()) {
    std::int64_t left = 0;
    for (std::size_t j = 0; j < columns.size(); left += columns[j++].product()) {
      const Tensor block = blocks[i * columns.size() + j].row_major();
      const std::int64_t m = columns[j].back(), sites = columns[j].product() / std::max<std::int64_t>(m, 1);
      const bool own_rows = sites > 1 && rows[i].size() > 1;
      const std::int64_t n = own_rows ? rows[i].back() : rows[i].product();
      if (block.numel() != points * std::max(sites, std::int64_t{1}) * n * m)
        throw Error(NEML2_ERROR_ARTIFACT, "matrix",
                    join("A package returns a block of ", block.numel(), " derivatives for ", points,
                         " points, which have ", rows[i].product(), " by ", columns[j].product(), "."));
      const char* from = block.data_as<const char>();
      for (std::int64_t p = 0; p < points; ++p)
        for (std::int64_t s = 0; s < sites; ++s)
          for (std::int64_t r = 0; r < n; ++r, from += m * item)
            std::memcpy(matrix.data_as<char>() +
                            ((p * height + top + (own_rows ? s * n : 0) + r) * width + left + s * m) * item,
                        from, static_cast<std::size_t>(m * item));
    }
  }
  return matrix;
}

}  // namespace neml2_capi
