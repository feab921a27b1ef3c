// Derivatives that a package returns, one tensor for each pair or, side by side, as parts of a matrix.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capi/segments/segment.h"

namespace neml2_capi::model {

// Derivative, and where it begins in a matrix.
struct PlacedPair {
  PairInfo info;
  std::int64_t row = 0, column = 0;
  std::optional<std::int64_t> matrix = std::nullopt;  // the number of the matrix, if the package returns it
};

// Returns the number of tensors that hold these pairs.
std::size_t num_tensors(const std::vector<artifact::Pair>& pairs);

// Returns the pairs whose tensors are the outputs of `package` from number `first` on; or, if it is null, parts of
// the matrix of all unknowns by all givens or parameters.
std::vector<PlacedPair> placed_pairs(const std::vector<artifact::Pair>& pairs, const Package* package,
                                     std::size_t first, bool of_parameter, const Scope& scope);

// Returns the pairs of a package that ends in a linear solve, whose blocks have an axis of size 1 for a scalar.
std::vector<PlacedPair> solved_pairs(const std::vector<artifact::Pair>& pairs, const Package* package,
                                     bool of_parameter, const Scope& scope);

// Returns the blocks of what the package returned.
Vector<Block> blocks_of(Vector<Tensor> tensors, const std::vector<PlacedPair>& pairs, const Chunk& chunk);

// Returns blocks that are parts of `scale` times one matrix of (points, n, m).
Vector<Block> parts_of(const Tensor& matrix, const std::vector<PlacedPair>& pairs, double scale, const Chunk& chunk);

}  // namespace neml2_capi::model
