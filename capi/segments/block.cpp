#include "capi/segments/block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "capi/base/error.h"
#include "capi/graph/algebra.h"
#include "capi/segments/misfit.h"
#include "capi/tensor/rows.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {
namespace {

// Tells whether the direction is the same at all sites of each point.
bool uniform(const Tensor& direction, const BlockShape& shape) {
  const auto bytes = static_cast<std::size_t>(direction.numel() / std::max<std::int64_t>(direction.sizes()[0], 1) /
                                              shape.input_sites * direction.itemsize());
  const char* data = direction.data_as<const char>();
  for (std::int64_t p = 0; p < direction.sizes()[0]; ++p)
    for (std::int64_t s = 1; s < shape.input_sites; ++s) {
      const char* first = data + static_cast<std::size_t>(p * shape.input_sites) * bytes;
      if (std::memcmp(first, first + static_cast<std::size_t>(s) * bytes, bytes) != 0) return false;
    }
  return true;
}

[[noreturn]] void refuse_lumped(const BlockShape& shape, const char* why) {
  throw Error(NEML2_ERROR_UNSUPPORTED, shape.name,
              join("The package gives the derivative ", shape.name, " for the same change at all ", shape.input_sites,
                   " sub-batch sites of the input; ", why,
                   " Differentiate a model whose output keeps the sub-batch axes, and reduce it afterwards."));
}

// Calls f(matrix, input offset, output offset) for every matrix of a block; offsets count rows of a Directions matrix.
// A lumped block takes the input at its first site, if it is the same at all.
template <class Scalar, class F>
void for_each_site(const Block& block, std::int64_t points, F&& f) {
  const BlockShape& shape = *block.shape;
  const std::int64_t sites = shape.lumped ? shape.output_sites : std::max(shape.output_sites, shape.input_sites);
  const std::int64_t size = shape.rows * shape.columns;
  const Scalar* data = block.data.data_as<const Scalar>();
  for (std::int64_t p = 0; p < points; ++p)
    for (std::int64_t s = 0; s < sites; ++s)
      f(data + ((block.batched ? p : 0) * shape.sites + (shape.sites > 1 ? s : 0)) * size,
        p * shape.input_size() + (shape.input_sites > 1 && !shape.lumped ? s * shape.columns : 0),
        p * shape.output_size() + (shape.output_sites > 1 ? s * shape.rows : 0));
}

// Returns values per site, (points, any sites, size, count), as (points, sites * size, count).
Tensor to_sites(Tensor values, std::int64_t sites) {
  const std::int64_t points = values.sizes()[0], size = values.sizes()[2], count = values.sizes()[3];
  if (sites == 1 && values.sizes()[1] != 1) values = algebra::sum(values, {1}, true);
  return shaped(expanded(values, {points, sites, size, count}), {points, sites * size, count});
}

// Adds the product of a block, or of its transpose, with the directions `from` to the directions `to`.
void add_product(const Block& block, bool transposed, const Tensor& from, Tensor& to) {
  with_scalar(to.dtype(), [&]<class Scalar>(Scalar*) {
    const std::int64_t rows = block.shape->rows, columns = block.shape->columns, count = to.sizes()[2];
    const Scalar* in = from.data_as<const Scalar>();
    Scalar* out = to.data_as<Scalar>();
    for_each_site<Scalar>(block, to.sizes()[0], [&](const Scalar* matrix, std::int64_t x, std::int64_t y) {
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          const Scalar* source = in + (transposed ? y + r : x + c) * count;
          Scalar* target = out + (transposed ? x + c : y + r) * count;
          for (std::int64_t k = 0; k < count; ++k) target[k] += matrix[r * columns + c] * source[k];
        }
    });
  });
}

// Returns the product of a block, or of its transpose, with a direction, on a device.
Tensor product(const Block& block, const Tensor& direction, bool transposed) {
  const BlockShape& shape = *block.shape;
  const std::int64_t points = direction.sizes()[0], count = direction.sizes()[2];
  Tensor matrices = shaped(block.data, {block.data.numel() / (shape.sites * shape.rows * shape.columns), shape.sites,
                                        shape.rows, shape.columns});
  if (transposed) matrices = transpose(matrices);
  const std::int64_t from = transposed ? shape.output_sites : shape.input_sites;
  const Tensor sites = shaped(direction, {points, from, matrices.sizes()[3], count});
  return to_sites(algebra::product(matrices, sites), transposed ? shape.input_sites : shape.output_sites);
}

void add_to(Tensor& sum, const Tensor& value) { sum = sum.data() ? algebra::add(sum, value) : value; }

constexpr const char* unread_tangent = "whether the tangent is the same at all of them, this device is not asked.";

}  // namespace

BlockShape block_shape(std::string name, std::int64_t numel, std::int64_t output_size, std::int64_t rows,
                       std::int64_t input_size, std::int64_t columns) {
  BlockShape shape{.name = std::move(name), .rows = rows, .columns = columns};
  const auto quotient = [&](std::int64_t size, std::int64_t base) {
    if (base < 1 || size < 1 || size % base != 0)
      throw misfit(shape.name, "The derivative ", shape.name, " has ", size, " elements, not a multiple of ", base);
    return size / base;
  };
  shape.output_sites = quotient(output_size, rows);
  shape.input_sites = quotient(input_size, columns);
  shape.sites = quotient(numel, rows * columns);
  const bool paired = shape.output_sites == shape.input_sites || shape.output_sites == 1 || shape.input_sites == 1;
  const bool fits =
      shape.sites == 1 || shape.sites == shape.output_sites || (paired && shape.sites == shape.input_sites);
  if (!fits)
    throw Error(NEML2_ERROR_UNSUPPORTED, shape.name,
                join("The derivative ", shape.name, " has ", shape.sites, " sub-batch sites, between an output of ",
                     shape.output_sites, " and an input of ", shape.input_sites, ": expected the output's, or one."));
  // Cells and the edges between them are other sites: each edge depends on several cells.
  shape.lumped = !paired || (shape.input_sites > 1 && shape.output_sites == 1 && shape.sites == 1);
  return shape;
}

Tensor& Directions::at(std::size_t value, std::int64_t size) {
  if (!of[value].data())
    of[value] = device.is_host() ? Tensor::zeros(dtype, {points, size, count})
                                 : algebra::filled(dtype, {points, size, count}, 0.0, device);
  return of[value];
}

Tensor identity(std::int64_t points, std::int64_t size, std::int64_t first, std::int64_t count, DType dtype,
                Device device) {
  if (!device.is_host())
    return expanded(algebra::moved(identity(1, size, first, count, dtype), device), {points, size, count});
  Tensor out = Tensor::zeros(dtype, {points, size, count});
  with_scalar(dtype, [&]<class Scalar>(Scalar*) {
    for (std::int64_t p = 0; p < points; ++p)
      for (std::int64_t i = 0; i < size; ++i) out.data_as<Scalar>()[(p * size + i) * count + first + i] = 1;
  });
  return out;
}

void set_column(Tensor& directions, std::int64_t c, const Tensor& values) {
  if (!directions.device().is_host())
    return algebra::assign(part(directions, 2, c, 1), shaped(values, values.sizes().then({1})));
  const std::int64_t count = directions.sizes().back();
  with_scalar(directions.dtype(), [&]<class Scalar>(Scalar*) {
    for (std::int64_t i = 0; i < values.numel(); ++i)
      directions.data_as<Scalar>()[i * count + c] = values.data_as<const Scalar>()[i];
  });
}

Tensor columns_of(const Tensor& directions, std::int64_t first, std::int64_t width) {
  return part(directions, 2, first, width).row_major();
}

void push_forward(const Vector<Block>& blocks, const std::vector<std::size_t>& outputs, Directions& directions) {
  Directions made = directions;
  for (std::size_t output : outputs) made.of[output] = Tensor();
  for (const Block& block : blocks) {
    const Tensor& input = directions.of[block.input];
    if (!input.data()) continue;
    if (!directions.device.is_host()) {
      if (block.shape->lumped) refuse_lumped(*block.shape, unread_tangent);
      add_to(made.of[block.output], product(block, input, false));
      continue;
    }
    if (block.shape->lumped && !uniform(input, *block.shape))
      refuse_lumped(*block.shape, "the tangent is not the same at all of them.");
    add_product(block, false, input, made.at(block.output, block.shape->output_size()));
  }
  directions = std::move(made);
}

void pull_back(const Vector<Block>& blocks, const std::vector<std::size_t>& outputs, Directions& directions) {
  Vector<Tensor> taken(directions.of.size());
  for (std::size_t output : outputs) std::swap(taken[output], directions.of[output]);
  for (const Block& block : blocks) {
    const Tensor& output = taken[block.output];
    if (!output.data()) continue;
    if (block.shape->lumped) refuse_lumped(*block.shape, "an adjoint at each of them cannot be told.");
    if (!directions.device.is_host()) {
      add_to(directions.of[block.input], product(block, output, true));
      continue;
    }
    add_product(block, true, output, directions.at(block.input, block.shape->input_size()));
  }
}

}  // namespace neml2_capi::model
