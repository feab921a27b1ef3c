// Other sizes and strides over the elements of a tensor, on whatever device they are.
#pragma once

#include <cstdint>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// Other axes over the same elements; a copy where they do not lie row-major.
Tensor shaped(const Tensor& tensor, const Dims& sizes);
// Repeated, without a copy, along leading axes and along those of size 1.
Tensor expanded(const Tensor& tensor, const Dims& sizes);
// Elements [begin, begin + size) of an axis.
Tensor part(const Tensor& tensor, std::int64_t axis, std::int64_t begin, std::int64_t size);
// The last two axes exchanged.
Tensor transpose(const Tensor& matrices);

}  // namespace neml2_capi
