// Transposes a matrix in tiles of two by two.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace neml2_capi {

// Two loads and two stores a tile.
template <class Item, class Extent>
void transpose_tiles(const Item* from, std::int64_t stride, Extent rows, Extent columns, Item* to) {
  using Pair [[gnu::vector_size(2 * sizeof(Item))]] = Item;
  std::int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    std::int64_t c = 0;
    for (; c + 2 <= columns; c += 2) {
      Pair a, b;
      std::memcpy(&a, from + r * stride + c, sizeof a);
      std::memcpy(&b, from + (r + 1) * stride + c, sizeof b);
      const Pair first = {a[0], b[0]}, second = {a[1], b[1]};
      std::memcpy(to + c * rows + r, &first, sizeof first);
      std::memcpy(to + (c + 1) * rows + r, &second, sizeof second);
    }
    if (c < columns)
      for (std::int64_t k = r; k < r + 2; ++k) to[c * rows + k] = from[k * stride + c];
  }
  if (r < rows)
    for (std::int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * stride + c];
}

// Writes the transpose, row-major, of a row-major matrix whose rows begin `stride` elements apart. The tangent of two
// symmetric tensors is asked for most.
template <class Item>
void transpose(const Item* from, std::int64_t stride, std::int64_t rows, std::int64_t columns, Item* to) {
  using Six = std::integral_constant<std::int64_t, 6>;
  if (rows == 6 && columns == 6)
    transpose_tiles(from, stride, Six(), Six(), to);
  else
    transpose_tiles(from, stride, rows, columns, to);
}

}  // namespace neml2_capi
