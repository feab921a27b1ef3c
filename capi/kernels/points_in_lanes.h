// The points of a block: their places in the arrays of a caller, and their values in the scratch.
#pragma once

#include "capi/kernels/newton_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

template <class T>
struct PointsInLanes {
  const Walk& walk;
  Scratch<T> scratch;
  std::int64_t begin = 0;  // the point of the first lane
  int used = 0;            // lanes with a point of their own

  bool is_full() const { return used == width<T>; }
  // Returns the numbers of the point of a lane.
  template <class X = T>
  [[gnu::always_inline]] X* at(const model::Points& array, int lane = 0) const {
    return reinterpret_cast<X*>(array.data) + (begin + lane) * array.stride;
  }
  [[gnu::always_inline]] T* numbers(At place) const { return reinterpret_cast<T*>(scratch[place]); }
  Trace* trace(const Implicit& system) const { return walk.traces ? walk.traces + system.number : nullptr; }
  // Takes the unknowns of a system back from the values that were given.
  void begin_at_solution(const Implicit& system) const {
    for (const Move& move : system.unpack) scratch.copy({move.to, move.from, move.components});
  }
};

// Rows of a block that is not full: lanes without a point of their own repeat the last one.
template <class T>
struct SomeRows {
  const T* first;
  std::int64_t stride;
  int used;

  const T* operator[](int l) const { return first + (l < used ? l : used - 1) * stride; }
};

template <class T>
void repeat(const T* values, Lanes<T>* to, std::int64_t components) {
  count_to(components, [&](std::int64_t c) { to[c] = values[c] - Lanes<T>{}; });
}

// Joins the bits of x - x, which is zero, or NaN if x is not finite: NaNs that are joined are a NaN again. A sum
// would wait for every addition.
template <class T>
[[gnu::always_inline]] inline Mask<T> bits_of(const Lanes<T>* values, std::int64_t components) {
  Mask<T> bits{};
  const auto join = [&](std::int64_t count) {
#pragma GCC unroll 6
    for (std::int64_t c = 0; c < count; ++c) bits |= __builtin_bit_cast(Mask<T>, values[c] - values[c]);
  };
  if (components == 6)
    join(6);
  else
    join(components);
  return bits;
}

// Sums of the products of many numbers with zero: zero, or NaN if a number is not finite. Each of six components has a sum
// of its own, so that no addition waits for another one of the block.
template <class T>
class ZerosInLanes {
  using V = Lanes<T>;

 public:
  [[gnu::always_inline]] void add(const V* values, std::int64_t components) {
    const auto join = [&](std::int64_t count) {
#pragma GCC unroll 6
      for (std::int64_t c = 0; c < count; ++c) sums_[c] = add_zero_times(values[c], sums_[c]);
    };
    if (components == 6)
      join(6);
    else
      for (std::int64_t c = 0; c < components; ++c) sums_[0] = add_zero_times(values[c], sums_[0]);
  }
  Mask<T> bits() const {
    const V sum = ((sums_[0] + sums_[1]) + (sums_[2] + sums_[3])) + (sums_[4] + sums_[5]);
    return __builtin_bit_cast(Mask<T>, sum);
  }

 private:
  // One operation if the instruction set has it.
  [[gnu::always_inline]] static V add_zero_times(const V& x, const V& sum) {
#if defined(__AVX2__)
    return multiply_add(x, V{}, sum);
#else
    return sum + x * T(0);
#endif
  }

  V sums_[6] = {};
};

template <class T>
[[gnu::always_inline]] inline Mask<T> non_finite_in(const Mask<T>& bits) {
  return __builtin_bit_cast(Lanes<T>, bits) != T(0);
}

// Calls a function with 0, 1, ..., and with counts that are constants for symmetric tensors with nothing between.
template <class Take>
[[gnu::always_inline]] inline void each_block(std::int64_t blocks, std::int64_t stride, std::int64_t components,
                                              Take&& take) {
  if (stride == 6 && components == 6)
    for (std::int64_t b = 0; b < blocks; ++b) take(b, 6, 6);
  else
    for (std::int64_t b = 0; b < blocks; ++b) take(b, stride, components);
}

}  // namespace
}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
