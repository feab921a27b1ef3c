#include "capi/tensor/layout.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace neml2_capi {
namespace {

Tensor permuted(const Tensor& tensor, const Dims& order) {
  Dims sizes, strides;
  for (std::int64_t axis : order) {
    sizes.push_back(tensor.sizes()[axis]);
    strides.push_back(tensor.strides()[axis]);
  }
  return Tensor(tensor.storage(), tensor.dtype(), sizes, strides, tensor.offset());
}

Dims inverse(const Dims& order) {
  Dims inverse = order;
  for (std::int64_t i = 0; i < order.size(); ++i) inverse[order[i]] = i;
  return inverse;
}

}  // namespace

Tensor laid_out(const Tensor& tensor, const Dims& order) {
  return permuted(permuted(tensor, order).row_major(), inverse(order));
}

Tensor copied_in_order(const Tensor& tensor, const Dims& order) {
  return permuted(permuted(tensor, order).copy(), inverse(order));
}

Dims order_of(const Tensor& tensor) {
  Dims order;
  const auto stride = [&](std::int64_t place) { return tensor.strides()[order[place]]; };
  for (std::int64_t axis = 0; axis < tensor.ndim(); ++axis) {
    order.push_back(axis);
    for (std::int64_t i = axis; i > 0 && stride(i - 1) < stride(i); --i) std::swap(order[i - 1], order[i]);
  }
  return order;
}

bool lies_in_order(const Tensor& tensor, const Dims& order) { return permuted(tensor, order).is_row_major(); }

}  // namespace neml2_capi
