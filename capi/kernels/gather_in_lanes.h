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
      V* const to = points.scratch[input.at];
      const T* const values = points.at(input.array);
      if (input.array.stride == 0) {
        if (is_first_) repeat(values, to, input.components);
        if (is_first_) of_all_ |= bits_of<T>(to, input.components);
        continue;
      }
      if (points.used == 1) {
        repeat(values, to, input.components);
        given |= bits_of<T>(to, input.components);
        continue;
      }
      take_rows(points, input);
      given |= bits_of<T>(to, input.components);
    }
    given_ = given | of_all_;
  }

  // Gathers so many full blocks, each into a scratch of its own, and returns their bits.
  [[gnu::always_inline]] Mask<T> full(const PointsInLanes<T>& points, std::int64_t blocks) {
    const std::int64_t size = points.walk.size;
    Mask<T> bits{};
    for (const Bound& input : points.walk.inputs) {
      const T* const from = points.at(input.array);
      V* const to = points.scratch[input.at];
      if (input.array.stride != 0) {
        each_block(blocks, input.array.stride, input.components,
                   [&bits, from, to, size](std::int64_t b, std::int64_t stride, std::int64_t components) {
                     V* const vectors = to + b * size;
                     rows_to_vectors<T>(from + b * width<T> * stride, stride, reinterpret_cast<T*>(vectors),
                                        components);
                     bits |= bits_of<T>(vectors, components);
                   });
      } else if (is_first_) {
        for (std::int64_t b = 0; b < points.walk.blocks_in_turn; ++b) repeat(from, to + b * size, input.components);
        of_all_ |= bits_of<T>(to, input.components);
      }
    }
    is_first_ = false;
    return bits | of_all_;
  }

  void end_first() { is_first_ = false; }

  // Bits of what the points of the block are given.
  const Mask<T>& given() const { return given_; }

 private:
  static void take_rows(const PointsInLanes<T>& points, const Bound& from) {
    const T* const first = points.at(from.array);
    if (points.is_full())
      rows_to_vectors<T>(first, from.array.stride, points.numbers(from.at), from.components);
    else
      transpose_to_vectors<T>(SomeRows<T>{first, from.array.stride, points.used}, points.numbers(from.at),
                              from.components);
  }

  std::int64_t last_new_ = 0;  // inputs from here on are the same for all blocks
  bool is_first_ = true;       // of its blocks
  Mask<T> given_{}, of_all_{};
};

}  // namespace
}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
