// Order of a tensor's elements in memory. An order lists the axes from the outermost to the innermost one.
#pragma once

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// Returns the tensor, copied if its elements do not lie side by side in this order.
Tensor laid_out(const Tensor& tensor, const Dims& order);

// Returns a copy in this order.
Tensor copied_in_order(const Tensor& tensor, const Dims& order);

// Returns the order of the tensor's strides.
Dims order_of(const Tensor& tensor);

// Tells whether the elements lie side by side in this order.
bool lies_in_order(const Tensor& tensor, const Dims& order);

}  // namespace neml2_capi
