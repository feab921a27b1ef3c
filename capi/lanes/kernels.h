// Arithmetic that is compiled once per instruction set; kernels<T>() has this machine's.
//
// The result for one matrix, or one element, is bitwise the same with any neighbours and in any place. It may differ
// between a machine that fuses products with sums and one that does not.
#pragma once

#include <cstdint>
#include <utility>

namespace neml2_capi::lanes {

// Layout of every system of a batch: n equations with `sides` right-hand sides, and the strides of their elements.
struct SystemLayout {
  std::int64_t n, sides;
  std::int64_t a_row, a_column;
  std::int64_t b_row, b_column;  // row: the equation, column: the right-hand side
  std::int64_t x_row, x_column;
};

// A x = b. The factors are written if `lu` is given.
template <class T>
struct System {
  const T* a;
  const T* b;
  T* x;                  // all NaN if A is singular
  std::int32_t* info;    // 0, or, as in LAPACK's getrf, the number of the first zero pivot, counted from 1
  T* lu;                 // n x n, column-major: A = P L U; or null
  std::int32_t* pivots;  // n: the row, counted from 1, that was swapped with row k; null if `lu` is null
};

struct Extent {
  std::int64_t rows, columns, inner;
};

template <class T>
struct Matrix {
  T* data;
  std::int64_t row_stride, column_stride;
};

// Kernels for elements of type T. Scratch memory, `work`, is aligned to 64 bytes and not initialised.
template <class T>
struct Kernels {
  // Solves a batch by LU factorisation with partial pivoting: the first of the largest elements is the pivot.
  void (*solve)(const SystemLayout& layout, const System<T>* systems, std::int64_t count, T* work);
  // Returns the number of elements of `work` that `solve` needs.
  std::int64_t (*solve_work)(std::int64_t n, std::int64_t sides);
  // Solves A x = b, or A^T x = b, in place, from the factors that `solve` wrote. For A the bits are as in `solve`.
  void (*substitute)(const T* lu, const std::int32_t* pivots, std::int64_t n, bool transposed, T* x);
  // out = beta * added + alpha * a b. As in BLAS, `added` is not read if beta is 0.
  void (*multiply)(const Extent& extent, Matrix<T> out, T beta, Matrix<const T> added, T alpha, Matrix<const T> a,
                   Matrix<const T> b, T* work);
  std::int64_t (*multiply_work)(const Extent& extent);
  // out[i] = base[i] ** exponent[i] for `count` elements, each with its stride.
  void (*power)(std::int64_t count, T* out, std::int64_t out_stride, const T* base, std::int64_t base_stride,
                const T* exponent, std::int64_t exponent_stride);
};

template <class T>
const Kernels<T>& kernels();

// Systems of one layout, which go to the kernel together. `Scratch` owns memory of a number of bytes.
template <class T, class Scratch>
class Batch {
 public:
  explicit Batch(const SystemLayout& layout)
      : layout_(layout),
        scratch_(kernels<T>().solve_work(layout.n, layout.sides) * static_cast<std::int64_t>(sizeof(T))) {}

  void add(const System<T>& system) {
    if (count_ == group) solve();
    systems_[count_++] = system;
  }
  // Solves the systems that were added since the last time.
  void solve() { kernels<T>().solve(layout_, systems_, std::exchange(count_, 0), scratch_.template as<T>()); }

 private:
  static constexpr std::int64_t group = 64;

  SystemLayout layout_;
  Scratch scratch_;
  System<T> systems_[group];
  std::int64_t count_ = 0;
};

}  // namespace neml2_capi::lanes
