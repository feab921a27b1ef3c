// Kernels that go with the text of every law, in the language of the driver: how arrays of a caller come to the law, and
// its results to them.
#pragma once

#include <string>
#include <string_view>

#include "capi/base/error.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::accelerator {

// neml2_copy: (points, rows, columns) elements of 4 or 8 bytes, from strides to strides, an item for each point: what it
// writes side by side meets in a cache. With statuses, points that failed are left out; all are if a step before `until` failed.
// neml2_product: rows of a matrix times a vector, for each point.
// neml2_note: adds to the summary {first step that is not good, points of status 1, 2 and 3, first of each}. Points of steps
// behind that step do not count. `step` is -1 if points have one step.
inline constexpr const char* kernels_text = R"(
#ifdef __OPENCL_VERSION__
#define NEML2_ENTRY __kernel
#define NEML2_MEMORY __global
#define NEML2_ITEM get_global_id(0)
#define NEML2_WIDE ulong
#define NEML2_LEAST atomic_min
#define NEML2_ADD atomic_add
#else
#define NEML2_ENTRY extern "C" __global__
#define NEML2_MEMORY
#define NEML2_ITEM (blockIdx.x * (long)blockDim.x + threadIdx.x)
#define NEML2_WIDE unsigned long long
#define NEML2_LEAST atomicMin
#define NEML2_ADD atomicAdd
#endif

NEML2_ENTRY void neml2_copy(long points, long rows, long columns, long words, NEML2_MEMORY const unsigned *from,
                            long from_first, long from_point, long from_row, long from_column, NEML2_MEMORY unsigned *to,
                            long to_first, long to_point, long to_row, long to_column,
                            NEML2_MEMORY const int *statuses, NEML2_MEMORY const int *summary, long until) {
  const long p = NEML2_ITEM;
  if (p >= points || (statuses && statuses[p] > 1) || summary[0] < until) return;
  from += (from_first + p * from_point) * words;
  to += (to_first + p * to_point) * words;
  for (long row = 0; row < rows; ++row)
    for (long column = 0; column < columns; ++column) {
      const long source = row * from_row + column * from_column, target = row * to_row + column * to_column;
      if (words == 2)
        ((NEML2_MEMORY NEML2_WIDE *)to)[target] = ((NEML2_MEMORY const NEML2_WIDE *)from)[source];
      else
        to[target] = from[source];
    }
}

NEML2_ENTRY void neml2_product(long points, long rows, long columns, int adds, NEML2_MEMORY const NEML2_REAL *matrix,
                               long first, long by_row, long by_column, NEML2_MEMORY const NEML2_REAL *vector,
                               long vector_first, long vector_point, long vector_component, NEML2_MEMORY NEML2_REAL *to, long to_first,
                               long to_point, long to_component, NEML2_MEMORY const int *statuses) {
  const long item = NEML2_ITEM, p = item % points, row = item / points;
  if (row >= rows || statuses[p] > 1) return;
  NEML2_MEMORY NEML2_REAL *sum = to + to_first + p * to_point + row * to_component;
  NEML2_REAL value = adds ? *sum : 0;
  for (long c = 0; c < columns; ++c)
    value += matrix[first + row * by_row + c * by_column + p] * vector[vector_first + p * vector_point + c * vector_component];
  *sum = value;
}

NEML2_ENTRY void neml2_note(long points, long begin, long step, NEML2_MEMORY const int *statuses,
                            NEML2_MEMORY int *summary) {
  const long p = NEML2_ITEM;
  if (p >= points || statuses[p] == 0 || summary[0] < step) return;
  if (step >= 0) NEML2_LEAST(summary, (int)step);
  NEML2_ADD(summary + statuses[p], 1);
  NEML2_LEAST(summary + 3 + statuses[p], (int)(begin + p));
}
)";

// Returns the text of a law with these kernels.
inline std::string with_kernels(std::string_view text, DType real) {
  return join(text, "\n#define NEML2_REAL ", real == DType::float32 ? "float" : "double", kernels_text);
}

}  // namespace neml2_capi::accelerator
