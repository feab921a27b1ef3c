// Values of one point, from and to the arrays of an evaluation, and multiplied by slopes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/tensor/rows.h"
#include "capi/values/points.h"
#include "capi/views/change.h"

namespace neml2_capi::model {

using Values = Vector<double>;

inline void load(const Points& array, const Variable& variable, std::int64_t p, Values& to) {
  const std::int64_t size = variable.point_shape.product();
  with_scalar(variable.dtype, [&]<class Scalar>(Scalar*) {
    const auto* from = reinterpret_cast<const Scalar*>(point(array, p, sizeof(Scalar)));
    to.assign(from, from + size);
  });
}

inline void store(const Points& array, const Variable& variable, std::int64_t p, const Values& from) {
  with_scalar(variable.dtype, [&]<class Scalar>(Scalar*) {
    auto* to = reinterpret_cast<Scalar*>(point(array, p, sizeof(Scalar)));
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<Scalar>(from[i]);
  });
}

inline void add_to(Values& sum, const Values& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

// Multiplies the values of each site, or rows of `width` of them, by the slope of an output or by its transpose.
inline Values times(const Change::Slope& slope, const Values& values, bool transposed = false, std::size_t width = 1) {
  const std::size_t rows = transposed ? slope.columns : slope.rows, columns = transposed ? slope.rows : slope.columns,
                    by_row = transposed ? 1 : slope.columns, by_column = transposed ? slope.columns : 1,
                    sites = values.size() / (columns * width);
  Values product(sites * rows * width);
  for (std::size_t s = 0; s < sites; ++s)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < columns; ++k)
        for (std::size_t j = 0; j < width; ++j)
          product[(s * rows + i) * width + j] +=
              slope.values[i * by_row + k * by_column] * values[(s * columns + k) * width + j];
  return product;
}

inline Values transposed_block(const Values& block, std::size_t rows, std::size_t columns) {
  Values turned(block.size());
  const std::size_t sites = block.size() / (rows * columns);
  for (std::size_t s = 0; s < sites; ++s)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        turned[(s * columns + j) * rows + i] = block[(s * rows + i) * columns + j];
  return turned;
}

}  // namespace neml2_capi::model
