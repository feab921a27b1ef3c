#include "capi/tensor/views.h"

#include <cstring>
#include <utility>

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

Tensor matrix_of(const Vector<Tensor>& blocks, std::size_t columns) {
  const std::int64_t points = blocks.front().sizes()[0];
  Vector<Tensor> rows;
  std::int64_t height = 0, width = 0;
  for (auto block = blocks.begin(); block != blocks.end(); block += static_cast<std::ptrdiff_t>(columns)) {
    const Tensor row = side_by_side(Vector<Tensor>(block, block + static_cast<std::ptrdiff_t>(columns)));
    width = row.sizes()[2];
    height += row.sizes()[1];
    rows.push_back(shaped(row, {points, row.sizes()[1] * width}));
  }
  return shaped(side_by_side(rows), {points, height, width});
}

}  // namespace neml2_capi
