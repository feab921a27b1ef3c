// Tensors of any batch, brought to the common batch of an evaluation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capi/values/points.h"

namespace neml2_capi::model {

// Broadcasts two batches by the rule of numpy: aligned at the last axis, sizes equal or 1. Returns nullopt for others.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);

// Returns a tensor of shape (*B, *point shape), its batch B brought to `batch`, as an array of the points of `batch` in
// row-major order. Replaces the tensor by a copy if no point stride says the same.
Points as_points(Tensor& tensor, const Dims& batch, const Dims& point_shape);

}  // namespace neml2_capi::model
