// Inputs and parameters of points, from the arrays of a caller into lanes.
#pragma once

#include "capi/kernels/points_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

// Gathers the inputs of one block after another: those that all points share are read for the first one alone.
template <class T>
class Gather {
  using V = Lanes<T>;

 public:
  explicit Gather(const Walk& walk) {
    for (std::int64_t i = 0; i < walk.inputs.count; ++i)
      if (walk.inputs.items[i].array.stride != 0) last_new_ = i + 1;
  }

  void one(const PointsInLanes<T>& points) {
    const Walk& walk = points.walk;
    Mask<T> given{};
    const std::int64_t count = is_first_ ? walk.inputs.count : last_new_;
    for (const Bound& input : List<Bound>{walk.inputs.items, count}) {
      V column[most_in_column];
      V* const to = input.apart == 1 ? points.scratch[input.at] : column;
      if (input.array.stride == 0) {
        if (!is_first_) continue;
        repeat(points.at(input.array), to, input.components);
        of_all_ |= bits_of<T>(to, input.components);
      } else if (points.is_full() && (input.components != 1 || input.array.stride != 1)) {
        as_constant<T>(input.components, [&](auto components) {
          rows_to_vectors<T>(points.at(input.array), input.array.stride, reinterpret_cast<T*>(to), components);
          given |= bits_of<T>(to, components);
        });
      } else {
        if (points.used == 1)
          repeat(points.at(input.array), to, input.components);
        else
          take_rows(points, input.array, input.components, reinterpret_cast<T*>(to));
        given |= bits_of<T>(to, input.components);
      }
      if (input.apart != 1) spread(points.scratch[input.at], column, input);
    }
    given_ = given | of_all_;
  }

  // Gathers so many full blocks, each into a scratch of its own, and returns their bits.
  [[gnu::always_inline]] Mask<T> full(const PointsInLanes<T>& points, std::int64_t blocks) {
    const std::int64_t size = points.walk.size;
    ZerosInLanes<T> zeros;
    for (const Bound& input : points.walk.inputs) {
      const T* const from = points.at(input.array);
      V* const to = points.scratch[input.at];
      if (input.array.stride != 0) {
        each_block(blocks, input.array.stride, input.components,
                   [&zeros, from, to, size](std::int64_t b, std::int64_t stride, std::int64_t components) {
                     V* const vectors = to + b * size;
                     rows_to_vectors<T>(from + b * width<T> * stride, stride, reinterpret_cast<T*>(vectors),
                                        components);
                     zeros.add(vectors, components);
                   });
      } else if (is_first_) {
        for (std::int64_t b = 0; b < points.walk.blocks_in_turn; ++b) repeat(from, to + b * size, input.components);
        of_all_ |= bits_of<T>(to, input.components);
      }
    }
    is_first_ = false;
    return zeros.bits() | of_all_;
  }

  void end_first() { is_first_ = false; }

  // Bits of what the points of the block are given.
  const Mask<T>& given() const { return given_; }

 private:
  static void take_rows(const PointsInLanes<T>& points, const model::Points& from, std::int64_t components, T* to) {
    const T* const first = points.at(from);
    if (points.is_full())
      rows_to_vectors<T>(first, from.stride, to, components);
    else
      transpose_to_vectors<T>(SomeRows<T>{first, from.stride, points.used}, to, components);
  }

  static void spread(V* to, const V* column, const Bound& input) {
    count_to(input.components, [&](std::int64_t c) { to[c * input.apart] = column[c]; });
  }

  std::int64_t last_new_ = 0;  // inputs from here on are the same for all blocks
  bool is_first_ = true;       // of its blocks
  Mask<T> given_{}, of_all_{};
};

}  // namespace
}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
