#include "capi/segments/placed_pair.h"

#include <algorithm>
#include <utility>

#include "capi/graph/algebra.h"
#include "capi/segments/misfit.h"
#include "capi/tensor/rows.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {
namespace {

// Returns (points, rows, columns) of `scale` times a matrix of (points, n, m).
Tensor part_of(const Tensor& matrix, const PlacedPair& place, double scale) {
  const std::int64_t points = matrix.sizes()[0], n = matrix.sizes()[1], m = matrix.sizes()[2];
  const std::int64_t rows = place.info.shape.output_size(), columns = place.info.shape.input_size();
  if (!matrix.device().is_host())  // if no solver of ours makes matrices: the scale is 1
    return part(part(matrix, 1, place.row, rows), 2, place.column, columns);
  Tensor part = Tensor::empty(matrix.dtype(), {points, rows, columns});
  with_scalar(matrix.dtype(), [&]<class Scalar>(Scalar*) {
    const Scalar* from = matrix.data_as<const Scalar>();
    Scalar* to = part.data_as<Scalar>();
    for (std::int64_t p = 0; p < points; ++p)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c)
          *to++ = static_cast<Scalar>(scale) * from[(p * n + place.row + r) * m + place.column + c];
  });
  return part;
}

// Throws unless the part lies in the matrix that the package returns.
void require_part(const PlacedPair& pair, const Package& package, std::size_t slot) {
  const Dims shape = package.output_shape(slot);
  if (shape.size() == 2 && pair.row + pair.info.shape.output_size() <= shape[0] &&
      pair.column + pair.info.shape.input_size() <= shape[1])
    return;
  throw misfit(package.name(), "Output ", slot, " of ", package.name(), " has the point shape ", shape.str(),
               ", which does not hold the derivative ", pair.info.shape.name);
}

}  // namespace

std::size_t num_tensors(const std::vector<artifact::Pair>& pairs) {
  std::int64_t matrices = 0;
  for (const artifact::Pair& pair : pairs) matrices = std::max(matrices, pair.matrix.value_or(-1) + 1);
  return matrices ? static_cast<std::size_t>(matrices) : pairs.size();
}

std::vector<PlacedPair> placed_pairs(const std::vector<artifact::Pair>& pairs, const Package* package,
                                     std::size_t first, bool of_parameter, const Scope& scope) {
  std::vector<PlacedPair> placed;
  for (const artifact::Pair& pair : pairs) {
    const bool own_tensor = package && !pair.matrix;
    placed.push_back({own_tensor ? pair_info(pair, *package, first + placed.size(), of_parameter, scope)
                                 : dense_pair(pair, of_parameter, scope),
                      pair.row, pair.column, pair.matrix});
    if (pair.matrix) require_part(placed.back(), *package, first + static_cast<std::size_t>(*pair.matrix));
  }
  return placed;
}

std::vector<PlacedPair> solved_pairs(const std::vector<artifact::Pair>& pairs, const Package* package,
                                     bool of_parameter, const Scope& scope) {
  std::vector<PlacedPair> solved = placed_pairs(pairs, package, 0, of_parameter, scope);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (solved[i].info.shape.sites == 1)
      solved[i].info.point_shape = pairs[i].output_base_shape.then(pairs[i].input_base_shape);
  return solved;
}

Vector<Block> blocks_of(Vector<Tensor> tensors, const std::vector<PlacedPair>& pairs, const Chunk& chunk) {
  for (const PlacedPair& pair : pairs)
    if (pair.matrix) tensors[static_cast<std::size_t>(*pair.matrix)].make_row_major();
  Vector<Block> blocks;
  blocks.reserve(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i)
    blocks.push_back(pairs[i].info.block(
        pairs[i].matrix ? part_of(tensors[static_cast<std::size_t>(*pairs[i].matrix)], pairs[i], 1.0)
                        : std::move(tensors[i]),
        chunk));
  return blocks;
}

Vector<Block> parts_of(const Tensor& matrix, const std::vector<PlacedPair>& pairs, double scale, const Chunk& chunk) {
  Vector<Block> blocks;
  for (const PlacedPair& pair : pairs) blocks.push_back(pair.info.block(part_of(matrix, pair, scale), chunk));
  return blocks;
}

}  // namespace neml2_capi::model
