// Arrays of a caller: the values of many material points of one variable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/tensor/tensor.h"
#include "capi/values/array.h"

namespace neml2_capi::model {

// Variable as the boundary shows it.
struct Variable {
  std::string name;
  std::string type;
  DType dtype = DType::float64;
  Dims point_shape;
  std::int64_t sub_ndim = 0;  // how many leading axes of the point shape are sub-batch axes
};

// Kind of a variable to a model. An unknown is of an implicit segment, by its name at the boundary.
enum class Kind : std::int32_t {
  input = NEML2_INPUT,
  output = NEML2_OUTPUT,
  parameter = NEML2_PARAMETER,
  unknown = NEML2_UNKNOWN
};

inline const char* name_of(Kind kind) {
  constexpr const char* names[] = {"input", "output", "parameter", "unknown"};
  return names[static_cast<std::size_t>(kind)];
}

// Tells whether any of these is bound.
inline bool any_bound(const std::vector<Points>& arrays) {
  for (const Points& array : arrays)
    if (array.data) return true;
  return false;
}

inline char* point(const Points& array, std::int64_t index, std::int64_t itemsize) {
  return array.data + index * array.stride * itemsize;
}

// Tells whether the values of `points` points stand as a tensor has them.
bool dense(const Points& array, const Variable& variable, std::int64_t points);

// Tells whether it is one value for all points. A result is then the sum over them.
inline bool is_one_value(const Points& array) { return array.data && array.stride == 0; }

// Returns the values of points [begin, begin + points): a view if they are dense and may stay where they are, else a
// copy.
Tensor gather(const Points& array, const Variable& variable, std::int64_t begin, std::int64_t points, bool copy);

// Returns the bound ones of several arrays, each (points, size), and empty tensors for the others.
Vector<Tensor> gather_bound(const std::vector<Points>& arrays, const std::vector<Variable>& variables,
                            std::int64_t begin, std::int64_t points);

// Writes a value, one row per point or one for all, to the points from `begin` on. An empty value is zero.
void write_rows(const Tensor& value, const Variable& variable, const Points& array, std::int64_t begin,
                std::int64_t points);
// Writes as write_rows(), and tells in the same pass whether all of it is finite, which only floating-point values may
// not be. Writes nothing if the array is not bound.
bool write_finite(const Tensor& value, const Variable& variable, const Points& array, std::int64_t begin,
                  std::int64_t points);

// Writes as write_rows(), one row per entry of `status`. Points whose solve failed are left as they are, or become NaN.
void scatter(const Tensor& value, const Variable& variable, const Points& array, std::int64_t begin,
             const Vector<std::int32_t>& status, bool mark_failed);

// Adds all rows of a row-major value, one per entry of `status`, to the one value of an array. Points whose solve
// failed are left out, or make it NaN.
void accumulate(const Tensor& value, const Variable& variable, const Points& array, const Vector<std::int32_t>& status,
                bool mark_failed);

void fill_nan(char* out, DType dtype, std::int64_t count);

// Returns the transpose of each matrix of (..., rows, columns).
Tensor transposed(const Tensor& matrices, std::int64_t rows, std::int64_t columns);

// Sizes of an evaluation, over which an array goes on.
struct Extent {
  std::int64_t points;
  std::int64_t steps = 1;
  std::int64_t component_stride = 1;  // except in arrays of one value for all points
};

// Throws NEML2_ERROR_ARGUMENT if the points of an array would reach beyond any memory, or would if each had its own.
void check_extent(const Points& array, const Variable& variable, Extent extent);

// Tells whether two arrays share an element. Arrays of equal strides may lie beside each other within them, rows or columns,
// and so may one value for all points; arrays of unequal strides are taken to overlap if their extents do.
bool overlap(const Points& a, const Variable& va, const Points& b, const Variable& vb, Extent extent);

// Tells whether points of one step share an element with points of another. Components, points and steps have to lie
// within one another, in any order; anything else is taken to overlap.
bool steps_overlap(const Points& array, const Variable& variable, Extent extent);

// Returns the value of a stored parameter as an array: one value, or one for each of so many points. Throws
// NEML2_ERROR_SHAPE if it is of another number of points.
Points stored_points(const Variable& parameter, const Tensor& value, std::int64_t points);

// Returns how many points from `begin` on, at most `limit`, have the same value, bit for bit.
std::int64_t length_of_equal(const Points& array, const Variable& variable, std::int64_t begin, std::int64_t limit);

}  // namespace neml2_capi::model
