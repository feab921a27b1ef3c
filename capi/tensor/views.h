// Other sizes and strides over the elements of a tensor, on any device.
#pragma once

#include <cstdint>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// Returns other axes over the same elements, or over a copy where they do not lie row-major.
Tensor shaped(const Tensor& tensor, const Dims& sizes);
// Repeats the tensor, without a copy, along leading axes and along those of size 1.
Tensor expanded(const Tensor& tensor, const Dims& sizes);
// Returns elements [begin, begin + size) of an axis.
Tensor part(const Tensor& tensor, std::int64_t axis, std::int64_t begin, std::int64_t size);
// Exchanges the last two axes.
Tensor transpose(const Tensor& matrices);

}  // namespace neml2_capi
