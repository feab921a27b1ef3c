// The scratch of a block, and what is done there: kernels are called, values copied, and linear systems solved.
#pragma once

#include "capi/kernels/block.h"
#include "capi/kernels/lu_of_one.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

template <class T>
struct Scratch {
  using V = Lanes<T>;
  V* const first;
  bool is_one = false;  // all lanes hold the same point

  // `number` tells which one of this size, in vectors.
  [[gnu::always_inline]] Scratch(char* memory, std::int64_t size, std::int64_t number)
      : first(reinterpret_cast<V*>(memory) + number * size) {}
  [[gnu::always_inline]] V* operator[](At place) const { return first + place; }

  [[gnu::always_inline]] void call(const Run& run) const { call(run, is_one ? run.of_one : run.kernel->run); }
  [[gnu::always_inline]] void call(const Run& run, decltype(neml2_kernel::run) function) const {
    void* const* const outputs = inputs(run) + run.kernel->input_count;
    function(inputs(run), outputs, outputs[run.kernel->output_count]);
  }
  [[gnu::always_inline]] void prepare(const Run& run) const {
    const neml2_kernel& kernel = *run.kernel;
    if (kernel.prepare) kernel.prepare(inputs(run), inputs(run)[kernel.input_count + kernel.output_count]);
  }
  [[gnu::always_inline]] void* const* inputs(const Run& run) const {
    return reinterpret_cast<void* const*>(first + run.arrays);
  }
  [[gnu::always_inline]] void copy(const Move& move) const {
    const V* const from = first + move.from;
    V* const to = first + move.to;
    if (move.from != nowhere)
      count_to(move.components, [&](std::int64_t i) { to[i] = from[i]; });
    else
      __builtin_memset(to, 0, static_cast<std::size_t>(move.components) * sizeof(V));
  }
  [[gnu::always_inline]] void copy(const List<Move>& moves) const {
    for (const Move& move : moves) copy(move);
  }
  // Runs the kernel of a segment, or of its predictor.
  [[gnu::always_inline]] void run_forward(const Step& step) const {
    copy(step.begin);
    if (!step.run.kernel) return;
    prepare(step.run);
    for (std::int64_t pass = 1;; ++pass) {
      call(step.run);
      if (pass >= step.passes) break;
      copy(step.feedback);
    }
  }
  // Adds a row times so many directions of `count`; sums stay in registers.
  template <int some>
  [[gnu::always_inline]] static void add_products(V* to, const V* row, const V* from, std::int64_t rows,
                                                  std::int64_t count) {
    V sum[some];
#pragma GCC unroll 8
    for (int k = 0; k < some; ++k) sum[k] = to[k];
    for (std::int64_t c = 0; c < rows; ++c)
#pragma GCC unroll 8
      for (int k = 0; k < some; ++k) sum[k] += row[c] * from[c * count + k];
#pragma GCC unroll 8
    for (int k = 0; k < some; ++k) to[k] = sum[k];
  }
  static void push_row(V* to, const V* row, const V* from, std::int64_t rows, std::int64_t count) {
    std::int64_t k = 0;
    for (; k + 6 <= count; k += 6) add_products<6>(to + k, row, from + k, rows, count);
    for (; k + 2 <= count; k += 2) add_products<2>(to + k, row, from + k, rows, count);
    if (k < count) add_products<1>(to + k, row, from + k, rows, count);
  }
  void push_forward(const Product& product, std::int64_t count) const {
    const V* const from = first + product.from;
    for (std::int64_t r = 0; r < product.rows; ++r) {
      const V* const row = first + product.block + r * product.stride;
      V* const to = first + product.to + r * count;
      if (product.from == nowhere)
        count_to(product.columns, [row, at = to + product.first](std::int64_t c) { at[c] += row[c]; });
      else
        push_row(to, row, from, product.columns, count);
    }
  }
  // Solves with the whole Jacobian, which is overwritten. Returns the lanes in which it is singular.
  Mask<T> solve_by_pivoting(const Implicit& system, V* right, std::int64_t sides) const {
    copy(system.assemble);
    for (const Product& product : system.substitute) push_forward(product, system.unknowns);
    return (is_one ? solve_one<T> : solve<T>)(first + system.jacobian, right, system.unknowns, sides);
  }
};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
