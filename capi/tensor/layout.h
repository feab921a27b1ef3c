// The order in which the elements of a tensor lie in memory.
#pragma once

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// The tensor, copied where its elements do not lie side by side with these axes from the outermost to the innermost one.
Tensor laid_out(const Tensor& tensor, const Dims& order);

// A copy that is so laid out.
Tensor copied_in_order(const Tensor& tensor, const Dims& order);

// The axes of the tensor by their strides, from the outermost to the innermost one.
Dims order_of(const Tensor& tensor);

// Whether its elements lie side by side with the axes in this order.
bool lies_in_order(const Tensor& tensor, const Dims& order);

}  // namespace neml2_capi
