// Other sizes and strides over the elements of a tensor, on any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// Returns other axes over the same elements, or over a copy if they do not lie row-major.
Tensor shaped(const Tensor& tensor, const Dims& sizes);
// Repeats the tensor, without a copy, along leading axes and along axes of size 1.
Tensor expanded(const Tensor& tensor, const Dims& sizes);
// Returns elements [begin, begin + size) of an axis.
Tensor part(const Tensor& tensor, std::int64_t axis, std::int64_t begin, std::int64_t size);
// Exchanges the last two axes.
Tensor transpose(const Tensor& matrices);

// Joins tensors of the host that differ in their last axis only along it, row-major.
Tensor side_by_side(const Vector<Tensor>& parts);
// Joins the blocks between groups whose rows have the shapes (sites..., n), on the host, to one matrix for each point.
// With respect to a group with sites, a block has a matrix for each: sites do not depend on each other.
Tensor matrix_of(const Vector<Tensor>& blocks, const std::vector<Dims>& rows, const std::vector<Dims>& columns);

}  // namespace neml2_capi
