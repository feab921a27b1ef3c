// Singular matrices that linear solves of a run met, gathered per point.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "capi/tensor/tensor.h"

namespace neml2_capi::graph {

// LAPACK's info of the matrices of one run, in the order of the batch; not 0 for a singular one. Empty if all are
// regular.
struct SingularInfo : Vector<std::int32_t> {
  using Vector<std::int32_t>::Vector;
  Vector<Tensor> on_device;  // replaces the above if the processor does not read the device: one tensor per solve
};

// Merges LAPACK's info of `n` matrices with earlier solves' info. Points are the leading axes of all batches, so one
// length is a multiple of the other. A singular matrix is an error if `singular` is null.
inline void report_singular(SingularInfo* singular, const std::int32_t* info, std::int64_t n) {
  const std::int64_t first = std::find_if(info, info + n, [](std::int32_t i) { return i != 0; }) - info;
  if (first == n) return;
  if (!singular)
    throw std::runtime_error("matrix " + std::to_string(first + 1) + " of " + std::to_string(n) + " is singular");
  const auto size = static_cast<std::int64_t>(singular->size());
  const std::int64_t points = std::max(n, size);
  if (points % n != 0 || (size != 0 && points % size != 0))
    throw std::runtime_error("linear solves of batches of " + std::to_string(size) + " and " + std::to_string(n));
  SingularInfo merged(static_cast<std::size_t>(points));
  for (std::int64_t i = 0; i < points; ++i) {
    const std::int32_t before = size == 0 ? 0 : (*singular)[static_cast<std::size_t>(i / (points / size))];
    merged[static_cast<std::size_t>(i)] = before != 0 ? before : info[i / (points / n)];
  }
  *singular = std::move(merged);
}

}  // namespace neml2_capi::graph
