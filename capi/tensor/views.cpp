#include "capi/tensor/views.h"

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

}  // namespace neml2_capi
