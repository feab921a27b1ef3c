// Results of a block, from lanes into the arrays of a caller.
#pragma once

#include "capi/kernels/points_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

template <class T>
class Scatter {
  using V = Lanes<T>;

 public:
  Scatter(const PointsInLanes<T>& points, const BlockReport<T>& report) : p_(points), report_(report) {}

  [[gnu::always_inline]] void all() const {
    const bool are_good = p_.is_full() && !any((report_.status > newton::non_finite) | report_.lost);
    for (const Bound& output : p_.walk.outputs) values(output, are_good);
    for (const Matrix& block : p_.walk.blocks) derivatives(block, are_good);
    for (const Bound& iterate : p_.walk.iterates)
      for (int l = 0; l < p_.used; ++l)
        if (p_.walk.guesses.count > 0 || report_.has_failed(l)) write(iterate, l);
  }

  // Values of full blocks, each in a scratch of its own, none of which has failed.
  [[gnu::always_inline]] static void full(const PointsInLanes<T>& points, std::int64_t blocks) {
    for (const Bound& output : points.walk.outputs)
      if (output.array.data)
        each_block(blocks, output.array.stride, output.components,
                   [size = points.walk.size, from = points.scratch[output.at], to = points.at(output.array)](
                       std::int64_t b, std::int64_t stride, std::int64_t components) {
                     const T* const vectors = reinterpret_cast<const T*>(from + b * size);
                     vectors_to_rows<T>(vectors, to + b * width<T> * stride, stride, components);
                   });
  }

  // Values of a block that is not full, of which no point has failed.
  void few() const {
    for (const Bound& output : p_.walk.outputs)
      for (int l = 0; l < p_.used && output.array.data; ++l) write(output, l);
  }

 private:
  bool has_results(int l) const { return !report_.has_failed(l) && !report_.lost[l]; }
  bool becomes_nan(int l) const { return p_.walk.mark_failed || report_.lost[l]; }

  static void fill_nan(T* to, std::int64_t count) {
    for (std::int64_t c = 0; c < count; ++c) to[c] = no_number<T>;
  }

  [[gnu::always_inline]] void values(const Bound& output, bool are_good) const {
    if (!output.array.data) return;
    if (are_good)
      return vectors_to_rows<T>(p_.numbers(output.at), p_.at(output.array), output.array.stride, output.components);
    for (int l = 0; l < p_.used; ++l)
      if (has_results(l))
        write(output, l);
      else if (becomes_nan(l))
        fill_nan(p_.at(output.array, l), output.components);
  }

  void write(const Bound& output, int l) const {
    T* const to = p_.at(output.array, l);
    const T* const from = p_.numbers(output.at) + l;
    count_to(output.components, [&](std::int64_t c) { to[c] = from[c * width<T>]; });
  }

  [[gnu::always_inline]] void derivatives(const Matrix& block, bool are_good) const {
    if (block.at != nowhere && !p_.walk.input_first && are_good) {
      T* to = p_.at(block.array);
      if (block.columns == block.row_stride)
        return vectors_to_rows<T>(p_.numbers(block.at), to, block.array.stride,
                                  block.sites * block.rows * block.columns);
      if (block.columns == 1 && block.sites * block.rows <= most_in_column) return column(block, to);
      for (std::int64_t row = 0; row < block.sites * block.rows; ++row, to += block.columns)
        vectors_to_rows<T>(p_.numbers(block.at + row * block.row_stride), to, block.array.stride, block.columns);
      return;
    }
    for (int l = 0; l < p_.used; ++l) {
      T* const to = p_.at(block.array, l);
      if (has_results(l))
        write(block, l, to);
      else if (becomes_nan(l))
        fill_nan(to, block.sites * block.rows * block.columns);
    }
  }

  // A column of a wider matrix, side by side.
  void column(const Matrix& block, T* to) const {
    V values[most_in_column];
    const V* const from = p_.scratch[block.at];
    const std::int64_t rows = block.sites * block.rows;
    for (std::int64_t row = 0; row < rows; ++row) values[row] = from[row * block.row_stride];
    vectors_to_rows<T>(reinterpret_cast<const T*>(values), to, block.array.stride, rows);
  }

  void write(const Matrix& block, int l, T* to) const {
    const bool turned = p_.walk.input_first;
    const std::int64_t by_row = turned ? 1 : block.columns, by_column = turned ? block.rows : 1;
    for (std::int64_t site = 0; site < block.sites; ++site, to += block.rows * block.columns)
      for (std::int64_t i = 0; i < block.rows; ++i) {
        T* const first = to + i * by_row;
        if (block.at == nowhere) {
          for (std::int64_t j = 0; j < block.columns; ++j) first[j * by_column] = T(0);
        } else {
          const T* const row = p_.numbers(block.at + (site * block.rows + i) * block.row_stride) + l;
          count_to(block.columns, [&](std::int64_t j) { first[j * by_column] = row[j * width<T>]; });
        }
      }
  }

  const PointsInLanes<T>& p_;
  const BlockReport<T>& report_;
};

}  // namespace
}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
