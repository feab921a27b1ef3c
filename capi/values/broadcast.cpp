#include "capi/values/broadcast.h"

#include <algorithm>

namespace neml2_capi::model {

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  for (std::int64_t i = 1; i <= shorter.size(); ++i) {
    std::int64_t& size = out[out.size() - i];
    const std::int64_t other = shorter[shorter.size() - i];
    if (size == 1)
      size = other;
    else if (other != 1 && other != size)
      return std::nullopt;
  }
  return out;
}

Points as_points(Tensor& tensor, const Dims& batch, const Dims& point_shape) {
  const Dims own = tensor.sizes().first(tensor.ndim() - point_shape.size());
  const std::int64_t size = point_shape.product();
  if (!(own == batch) && own.product() != 1) {
    // Some batch axes repeat: strides of 0 say so, and a copy lays the repeats out.
    Dims sizes = batch, strides;
    sizes.append(point_shape);
    for (std::int64_t axis = 0; axis < batch.size(); ++axis) {
      const std::int64_t i = axis - (batch.size() - own.size());
      strides.push_back(i < 0 || own[i] == 1 ? 0 : tensor.strides()[i]);
    }
    strides.append(tensor.strides().last(point_shape.size()));
    tensor = Tensor(tensor.storage(), tensor.dtype(), sizes, strides, tensor.offset()).copy();
    return {tensor.data_as<char>(), size};
  }
  tensor = tensor.row_major();
  return {tensor.data_as<char>(), own.product() == 1 && batch.product() != 1 ? 0 : size};
}

}  // namespace neml2_capi::model
