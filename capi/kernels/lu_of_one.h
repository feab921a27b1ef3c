// The linear system of one point, which all lanes hold: entries of a row stand side by side in a vector.
//
// Every entry goes through the operations of lu.h in their order, so that it has the same bits.
#pragma once

#include "capi/kernels/lu.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

// A matrix whose entries fill all lanes, as numbers: row by row, each from a vector's beginning. They take its place.
template <class T>
class OneMatrix {
  using V = Lanes<T>;

 public:
  OneMatrix(V* lanes, std::int64_t rows, std::int64_t columns)
      : packs((columns + width<T> - 1) / width<T>), first_(lanes), columns_(columns) {
    const T* from = reinterpret_cast<const T*>(lanes);
    for (std::int64_t i = 0; i < rows; ++i) {
      T* const to = numbers(i);
      for (std::int64_t j = 0; j < columns; ++j, from += width<T>) to[j] = *from;
      for (std::int64_t j = columns; j < packs * width<T>; ++j) to[j] = T(0);
    }
  }
  // Fills the lanes again.
  void spread(std::int64_t rows) const {
    for (std::int64_t i = rows; i-- > 0;)
      for (std::int64_t j = columns_; j-- > 0;) first_[i * columns_ + j] = numbers(i)[j] - V{};
  }
  void exchange(std::int64_t i, std::int64_t k) const {
    for (std::int64_t p = 0; p < packs; ++p) {
      const V old = row(i)[p];
      row(i)[p] = row(k)[p];
      row(k)[p] = old;
    }
  }
  // Subtracts a multiple of row k from row i, from a vector on.
  [[gnu::always_inline]] void subtract(std::int64_t i, T factor, std::int64_t k, std::int64_t begin) const {
    V* const to = row(i);
    const V* const from = row(k);
#pragma GCC unroll 4
    for (std::int64_t p = begin; p < packs; ++p) to[p] -= factor * from[p];
  }
  V* row(std::int64_t i) const { return first_ + i * packs; }
  T* numbers(std::int64_t i) const { return reinterpret_cast<T*>(row(i)); }

  const std::int64_t packs;

 private:
  V* const first_;
  const std::int64_t columns_;
};

// As solve(). Entries to the left of a pivot are not needed any more, and are spoilt.
template <class T>
Mask<T> solve_one(Lanes<T>* a, Lanes<T>* b, std::int64_t n, std::int64_t sides) {
  using V = Lanes<T>;
  const OneMatrix<T> left(a, n, n), right(b, n, sides);
  bool singular = false;
  for (std::int64_t k = 0; k < n; ++k) {
    T largest = 0;
    std::int64_t row = k + 1;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (const T size = absolute(left.numbers(i)[k]); size > largest) largest = size, row = i;
    if (absolute(left.numbers(k)[k]) < T(0.1) * largest) {
      left.exchange(k, row);
      right.exchange(k, row);
    }
    const T value = left.numbers(k)[k];
    singular |= value == T(0);
    const Pivot<T> pivot(value - V{});
    for (std::int64_t i = k + 1; i < n; ++i) {
      const T factor = pivot.divide(left.numbers(i)[k] - V{})[0];
      left.subtract(i, factor, k, (k + 1) / width<T>);
      right.subtract(i, factor, k, 0);
    }
  }
  for (std::int64_t k = n; k-- > 0;) {
    const Pivot<T> pivot(left.numbers(k)[k] - V{});
    for (std::int64_t p = 0; p < right.packs; ++p) right.row(k)[p] = pivot.divide(right.row(k)[p]);
    for (std::int64_t i = 0; i < k; ++i) right.subtract(i, left.numbers(i)[k], k, 0);
  }
  right.spread(n);
  if (singular)
    for (std::int64_t i = 0; i < n * sides; ++i) b[i] = all_of<V>(no_number<double>);
  return Mask<T>{} - static_cast<Integer<T>>(singular);
}

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
