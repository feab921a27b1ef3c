// Blocks of a segment's Jacobian, and their products with directions: the chain rule between segments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/tensor/tensor.h"

namespace neml2_capi::model {

// Shape of a block, which maps an input to an output at one point. A value has one or several *sites*, the positions on
// its sub-batch axes, and base components at each.
struct BlockShape {
  std::string name;                    // "stress:strain"
  std::int64_t rows = 1, columns = 1;  // of the matrix at one site: components of the output and of the input
  std::int64_t sites = 1;              // matrices at one point; 1: the same at every site
  std::int64_t output_sites = 1, input_sites = 1;
  // True for the derivative for one change at all sites of the input: what a change at one site does is not known.
  bool lumped = false;

  std::int64_t output_size() const { return output_sites * rows; }
  std::int64_t input_size() const { return input_sites * columns; }
};

// Returns the shape of a block that is `numel` numbers at each point, between values of these sizes and base sizes.
// Throws NEML2_ERROR_ARTIFACT if they do not fit.
BlockShape block_shape(std::string name, std::int64_t numel, std::int64_t output_size, std::int64_t rows,
                       std::int64_t input_size, std::int64_t columns);

// Derivative of one value with respect to another, or to a promoted parameter. Parameters are numbered after the
// values.
struct Block {
  std::size_t output = 0, input = 0;
  const BlockShape* shape = nullptr;
  Tensor data;          // row-major: points, sites, rows, columns
  bool batched = true;  // else of one row, which is the same for all points
};

// Directions: one matrix (size of the value, count) per point for each value and then each parameter; an empty tensor
// is zero.
struct Directions {
  std::int64_t points = 0, count = 0;
  DType dtype = DType::float64;
  Vector<Tensor> of;
  Device device = {};

  // Returns the tensor of a value of this size, made of zeros if there was none.
  Tensor& at(std::size_t value, std::int64_t size);
};

// Returns the directions of `size` components, each its own: columns [first, first + size) are the identity, the others
// zero.
Tensor identity(std::int64_t points, std::int64_t size, std::int64_t first, std::int64_t count, DType dtype,
                Device device = {});

// Writes (points, size) to column `c` of (points, size, count).
void set_column(Tensor& directions, std::int64_t c, const Tensor& values);

// Returns columns [first, first + width) of (points, size, count), row-major.
Tensor columns_of(const Tensor& directions, std::int64_t first, std::int64_t width);

// Replaces the directions of a segment's outputs by those that follow from its inputs.
void push_forward(const Vector<Block>& blocks, const std::vector<std::size_t>& outputs, Directions& directions);

// Applies the transpose: adds to the directions of a segment's inputs what follows from its outputs, whose own become
// zero.
void pull_back(const Vector<Block>& blocks, const std::vector<std::size_t>& outputs, Directions& directions);

}  // namespace neml2_capi::model
