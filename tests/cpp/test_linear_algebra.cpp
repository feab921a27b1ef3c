// Linear systems and products of matrices: they solve and multiply, and what is computed for a point is bitwise the
// same for every batch, place, neighbour and stride; for the instruction set of this machine and for the one that runs
// everywhere.
#include "provider_calls.h"

#define NML2_INSTRUCTION_SET everywhere
#include <algorithm>
#include <limits>

#include "capi/lanes/vector_kernels.cpp"

using namespace neml2_capi;
using namespace neml2_capi::test;
using aoti::Argument;

namespace {

struct Solution {
  Tensor x, lu, pivots, info;
};

template <class T>
using Solve = Solution (*)(const Tensor& a, const Tensor& b);

Argument right_side() {
  Argument argument;
  argument.name = "left";
  argument.kind = Argument::Kind::boolean;
  argument.boolean = false;
  return argument;
}

Solution by_the_provider(const Tensor& a, const Tensor& b) {
  std::vector<Tensor> out = call("aten::_linalg_solve_ex", {a, b}, 4);
  return {out[0], out[1], out[2], out[3]};
}

// Matrices (batch, n, n) and right-hand sides (batch, n, m).
template <class T>
Solution by_the_portable_kernel(const Tensor& a, const Tensor& b) {
  using namespace lanes;
  const std::int64_t batch = a.sizes()[0], n = a.sizes()[1], sides = b.sizes()[2];
  Solution out = {Tensor(Storage::allocate(b.numel() * a.itemsize()), a.dtype(), b.sizes(), {n * sides, 1, n}),
                  Tensor(Storage::allocate(a.numel() * a.itemsize()), a.dtype(), a.sizes(), {n * n, 1, n}),
                  Tensor::empty(DType::int32, {batch, n}), Tensor::empty(DType::int32, {batch})};
  std::vector<System<T>> systems;
  for (std::int64_t i = 0; i < batch; ++i)
    systems.push_back({a.data_as<T>() + i * a.strides()[0], b.data_as<T>() + i * b.strides()[0],
                       out.x.data_as<T>() + i * n * sides, out.info.data_as<std::int32_t>() + i,
                       out.lu.data_as<T>() + i * n * n, out.pivots.data_as<std::int32_t>() + i * n});
  const SystemLayout layout = {n, sides, a.strides()[1], a.strides()[2], b.strides()[1], b.strides()[2], 1, n};
  const Tensor work = Tensor::empty(a.dtype(), {everywhere::solve_work<T>(n, sides)});
  everywhere::solve(layout, systems.data(), batch, work.data_as<T>());
  return out;
}

template <class T>
T& at(const Tensor& tensor, std::int64_t m, std::int64_t i, std::int64_t j) {
  return tensor.data_as<T>()[m * tensor.strides()[0] + i * tensor.strides()[1] + j * tensor.strides()[2]];
}

// max |a b - c|
template <class T>
double distance(const Tensor& a, const Tensor& b, const Tensor& c) {
  double worst = 0;
  for (std::int64_t m = 0; m < c.sizes()[0]; ++m)
    for (std::int64_t i = 0; i < c.sizes()[1]; ++i)
      for (std::int64_t j = 0; j < c.sizes()[2]; ++j) {
        long double sum = -at<T>(c, m, i, j);
        for (std::int64_t k = 0; k < a.sizes()[2]; ++k)
          sum += static_cast<long double>(at<T>(a, m, i, k)) * at<T>(b, m, k, j);
        worst = std::max(worst, std::abs(static_cast<double>(sum)));
      }
  return worst;
}

Tensor transposed(const Tensor& t) {
  return view(t, {t.sizes()[0], t.sizes()[2], t.sizes()[1]}, {t.strides()[0], t.strides()[2], t.strides()[1]});
}

// The same values, each matrix stored by columns.
Tensor stored_by_columns(const Tensor& t) { return transposed(transposed(t).copy()); }

// L and U multiplied, with the rows swapped back, give A: as of getrf.
template <class T>
void expect_factors(const Tensor& a, const Solution& solution, double tolerance) {
  const std::int64_t batch = a.sizes()[0], n = a.sizes()[1];
  const Tensor lower = Tensor::zeros(a.dtype(), a.sizes()), upper = Tensor::zeros(a.dtype(), a.sizes());
  const Tensor permuted = a.copy();
  for (std::int64_t m = 0; m < batch; ++m)
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) at<T>(j < i ? lower : upper, m, i, j) = at<T>(solution.lu, m, i, j);
      at<T>(lower, m, i, i) = T(1);
      const std::int64_t pivot = solution.pivots.data_as<std::int32_t>()[m * n + i] - 1;
      EXPECT(pivot >= i && pivot < n);
      for (std::int64_t j = 0; j < i; ++j) EXPECT(std::abs(at<T>(lower, m, i, j)) <= T(1));
      for (std::int64_t j = 0; j < n; ++j) std::swap(at<T>(permuted, m, i, j), at<T>(permuted, m, pivot, j));
    }
  EXPECT(distance<T>(lower, upper, permuted) < tolerance);
}

template <class T>
void systems_are_solved_and_their_factors_returned(Solve<T> solve) {
  Numbers random;
  for (const std::int64_t n : {1, 2, 3, 5, 6, 7, 8, 12, 13, 19, 24, 33, 64, 100})
    for (const std::int64_t sides : {1, 2, 6, 21}) {
      const Tensor a = numbers<T>(random, {11, n, n}), b = numbers<T>(random, {11, n, sides});
      const Solution solution = solve(a, b);
      double largest = 1;
      for (std::int64_t i = 0; i < solution.x.numel(); ++i)
        largest = std::max(largest, std::abs(static_cast<double>(solution.x.data_as<T>()[i])));
      const double tolerance = 8 * static_cast<double>(n) * std::numeric_limits<T>::epsilon();
      EXPECT(distance<T>(a, solution.x, b) < tolerance * largest);
      expect_factors<T>(a, solution, tolerance);
      for (int i = 0; i < 11; ++i) EXPECT(solution.info.data_as<std::int32_t>()[i] == 0);
    }
}

// Matrices of which some are singular, or hold what is not a number, or infinities, or hardly anything at all.
template <class T>
Tensor difficult(Numbers& random, std::int64_t batch, std::int64_t n) {
  const Tensor a = numbers<T>(random, {batch, n, n});
  for (std::int64_t m = 0; m < batch; ++m) {
    const auto any = [&] { return static_cast<std::int64_t>(random.bits() % static_cast<std::uint64_t>(n)); };
    const std::int64_t row = any(), column = any();
    switch (random.bits() % 12) {
      case 0:
        for (std::int64_t i = 0; i < n; ++i) at<T>(a, m, i, column) = 0;
        break;
      case 1: at<T>(a, m, row, column) = std::numeric_limits<T>::quiet_NaN(); break;
      case 2: at<T>(a, m, row, column) = std::numeric_limits<T>::infinity(); break;
      case 3:  // the reciprocals of its pivots overflow
        for (std::int64_t i = 0; i < n * n; ++i) a.data_as<T>()[m * n * n + i] *= std::numeric_limits<T>::min() / 16;
        break;
      case 4:  // no pivoting
        for (std::int64_t i = 0; i < n; ++i) at<T>(a, m, i, i) += static_cast<T>(n);
        break;
      case 5:  // ties: the first of the largest is the pivot
        for (std::int64_t i = 0; i < n * n; ++i) {
          T& value = a.data_as<T>()[m * n * n + i];
          value = std::copysign(T(1), value);
        }
        break;
      default: break;
    }
  }
  return a;
}

void expect_same(const Solution& part, const Solution& all, std::int64_t first, auto type) {
  using T = typename decltype(type)::type;
  const std::int64_t n = part.x.sizes()[0];
  EXPECT(same_values<T>(part.x, entries(all.x, first, n)));
  EXPECT(same_values<T>(part.lu, entries(all.lu, first, n)));
  EXPECT(std::memcmp(part.info.data(), all.info.data_as<std::int32_t>() + first, static_cast<std::size_t>(4 * n)) == 0);
  const std::int64_t size = part.pivots.sizes()[1];
  EXPECT(std::memcmp(part.pivots.data(), all.pivots.data_as<std::int32_t>() + first * size,
                     static_cast<std::size_t>(4 * n * size)) == 0);
}

template <class T>
void a_solution_does_not_depend_on_batch_place_or_neighbours(Solve<T> solve) {
  Numbers random;
  std::vector<std::int64_t> orders;
  for (std::int64_t n = 1; n <= 24; ++n) orders.push_back(n);
  orders.insert(orders.end(), {33, 64});
  constexpr std::int64_t batch = 40;
  for (const std::int64_t n : orders)
    for (const std::int64_t sides : {1, 3}) {
      const Tensor a = difficult<T>(random, batch, n), b = numbers<T>(random, {batch, n, sides});
      const Solution all = solve(a, b);
      for (std::int64_t i = 0; i < batch; ++i)
        expect_same(solve(entries(a, i, 1), entries(b, i, 1)), all, i, std::type_identity<T>{});
      for (std::int64_t size = 2; size <= batch; size += n > 24 ? 9 : 1) {
        const std::int64_t first =
            static_cast<std::int64_t>(random.bits() % static_cast<std::uint64_t>(batch - size + 1));
        expect_same(solve(entries(a, first, size), entries(b, first, size)), all, first, std::type_identity<T>{});
      }
      // In the reverse order, and each beside a copy of another.
      const Tensor turned_a = Tensor::empty(a.dtype(), a.sizes()), turned_b = Tensor::empty(b.dtype(), b.sizes());
      for (const std::int64_t step : {batch - 1, std::int64_t{7}}) {
        const auto source = [&](std::int64_t i) { return (i * step + step) % batch; };
        for (std::int64_t i = 0; i < batch; ++i) {
          entries(a, source(i), 1).copy_to(turned_a.data_as<T>() + i * n * n);
          entries(b, source(i), 1).copy_to(turned_b.data_as<T>() + i * n * sides);
        }
        const Solution turned = solve(turned_a, turned_b);
        for (std::int64_t i = 0; i < batch; ++i)
          EXPECT(same_values<T>(entries(turned.x, i, 1), entries(all.x, source(i), 1)));
      }
      // From other strides.
      expect_same(solve(stored_by_columns(a), stored_by_columns(b)), all, 0, std::type_identity<T>{});
    }
}

template <class T>
void a_singular_matrix_is_reported_and_gives_no_number(Solve<T> solve) {
  Numbers random;
  for (const std::int64_t n : {1, 4, 7, 19, 40}) {
    const Tensor a = numbers<T>(random, {9, n, n}), b = numbers<T>(random, {9, n, 2});
    const Solution before = solve(a, b);
    const std::int64_t column = n / 2;
    for (const std::int64_t m : {0, 4, 8})
      for (std::int64_t i = 0; i < n; ++i) at<T>(a, m, i, column) = 0;
    const Solution after = solve(a, b);
    for (std::int64_t m = 0; m < 9; ++m) {
      const bool singular = m % 4 == 0;
      EXPECT(after.info.data_as<std::int32_t>()[m] == (singular ? column + 1 : 0));
      for (std::int64_t i = 0; i < n; ++i) EXPECT(std::isnan(at<T>(after.x, m, i, 1)) == singular);
      if (!singular) EXPECT(same_values<T>(entries(after.x, m, 1), entries(before.x, m, 1)));
    }
  }
}

// However matrices and right-hand sides are matched, each pair is solved alike.
template <class T>
void a_solution_is_the_same_from_repeated_matrices_and_sides() {
  Numbers random;
  for (const std::int64_t n : {4, 7, 19}) {
    const Tensor a = numbers<T>(random, {1, n, n}), b = numbers<T>(random, {9, n, 3});
    const Tensor repeated = view(a, {9, n, n}, {0, n, 1});
    const Tensor expected = by_the_provider(repeated, b).x;
    EXPECT(same_values<T>(by_the_provider(a, b).x, expected));
    EXPECT(same_values<T>(by_the_provider(view(a, {n, n}, {n, 1}), b).x, expected));
    EXPECT(same_values<T>(by_the_provider(repeated.copy(), b).x, expected));
    const Tensor one = entries(b, 2, 1);
    EXPECT(same_values<T>(entries(by_the_provider(repeated, one).x, 5, 1), entries(expected, 2, 1)));
    // Vectors.
    const Tensor column = view(b, {9, n}, {3 * n, 3}, 1);
    const Tensor vectors = by_the_provider(repeated, column).x;
    EXPECT((vectors.sizes() == Dims{9, n}));
    EXPECT(same_values<T>(vectors, view(expected, {9, n}, {3 * n, 1}, n)));
    // X A = B
    const Tensor rows = numbers<T>(random, {9, 2, n});
    const Tensor x = call("aten::_linalg_solve_ex", {repeated, rows}, 4, {right_side()})[0];
    EXPECT(distance<T>(x, repeated, rows) < 1e5 * std::numeric_limits<T>::epsilon());
    for (std::int64_t i = 0; i < 9; ++i)
      EXPECT(same_values<T>(call("aten::_linalg_solve_ex", {a, entries(rows, i, 1)}, 4, {right_side()})[0],
                            entries(x, i, 1)));
    // The inverse is the solution for the identity.
    const Tensor identity = Tensor::zeros(a.dtype(), {9, n, n});
    for (std::int64_t m = 0; m < 9; ++m)
      for (std::int64_t i = 0; i < n; ++i) at<T>(identity, m, i, i) = 1;
    const Tensor inverse = call("aten::linalg_inv_ex", {repeated}, 2)[0];
    EXPECT((inverse.strides() == Dims{n * n, 1, n}));
    EXPECT(same_values<T>(inverse, by_the_provider(repeated, identity).x));
  }
}

template <class T>
using Multiply = void (*)(const Tensor& out, const Tensor& a, const Tensor& b);

template <class T>
void multiply_by_the_provider(const Tensor& out, const Tensor& a, const Tensor& b) {
  Tensor to = out, left = a, right = b;
  EXPECT(find<std::int32_t(Tensor*, Tensor*, Tensor*)>("nml2_torch_cpu_bmm_out")(&to, &left, &right) == 0);
}

template <class T>
void multiply_by_the_portable_kernel(const Tensor& out, const Tensor& a, const Tensor& b) {
  using namespace lanes;
  const Extent extent = {out.sizes()[1], out.sizes()[2], a.sizes()[2]};
  const Tensor work = Tensor::empty(a.dtype(), {everywhere::multiply_work<T>(extent)});
  const auto matrix = [](const Tensor& t, std::int64_t m) {
    return Matrix<const T>{t.data_as<T>() + m * t.strides()[0], t.strides()[1], t.strides()[2]};
  };
  for (std::int64_t m = 0; m < out.sizes()[0]; ++m)
    everywhere::multiply<T>(extent, {&at<T>(out, m, 0, 0), out.strides()[1], out.strides()[2]}, 0, matrix(a, m), 1,
                            matrix(a, m), matrix(b, m), work.data_as<T>());
}

template <class T>
void products_are_summed_in_order_whatever_the_strides(Multiply<T> multiply) {
  Numbers random;
  const std::int64_t sizes[] = {1, 2, 3, 4, 6, 7, 9, 13, 19, 24, 70};
  for (const std::int64_t rows : sizes)
    for (const std::int64_t columns : sizes)
      for (const std::int64_t inner : {1, 3, 7, 19, 150}) {
        if (rows * columns * inner > 20000) continue;
        const Tensor a = numbers<T>(random, {5, rows, inner}), b = numbers<T>(random, {5, inner, columns});
        const Tensor out = Tensor::empty(a.dtype(), {5, rows, columns});
        multiply(out, a, b);
        EXPECT(distance<T>(a, b, out) < static_cast<double>(inner) * std::numeric_limits<T>::epsilon());
        const Tensor a_columns = stored_by_columns(a), b_columns = stored_by_columns(b);
        const Tensor other = Tensor::empty(a.dtype(), {5, rows, columns});
        multiply(other, a_columns, b);
        EXPECT(same_values<T>(other, out));
        multiply(other, a, b_columns);
        EXPECT(same_values<T>(other, out));
        const Tensor by_columns = stored_by_columns(out);
        multiply(by_columns, a_columns, b_columns);
        EXPECT(same_values<T>(by_columns, out));
        // One element by itself.
        const Tensor row = view(a, {1, 1, inner}, {0, 0, 1}, (3 * rows + rows - 1) * inner);
        const Tensor column = view(b, {1, inner, 1}, {0, columns, 0}, 3 * inner * columns + columns - 1);
        const Tensor one = Tensor::empty(a.dtype(), {1, 1, 1});
        multiply(one, row, column);
        EXPECT(same(at<T>(one, 0, 0, 0), at<T>(out, 3, rows - 1, columns - 1)));
      }
  // An empty sum.
  const Tensor nothing = numbers<T>(random, {2, 3, 4});
  multiply(nothing, Tensor::empty(nothing.dtype(), {2, 3, 0}), Tensor::empty(nothing.dtype(), {2, 0, 4}));
  EXPECT(same_values<T>(nothing, Tensor::zeros(nothing.dtype(), {2, 3, 4})));
}

template <class T>
void solves_and_multiplies() {
  for (const Solve<T> solve : {&by_the_provider, &by_the_portable_kernel<T>}) {
    systems_are_solved_and_their_factors_returned<T>(solve);
    a_solution_does_not_depend_on_batch_place_or_neighbours<T>(solve);
    a_singular_matrix_is_reported_and_gives_no_number<T>(solve);
  }
  a_solution_is_the_same_from_repeated_matrices_and_sides<T>();
  for (const Multiply<T> multiply : {multiply_by_the_provider<T>, multiply_by_the_portable_kernel<T>})
    products_are_summed_in_order_whatever_the_strides<T>(multiply);
}

}  // namespace

int main(int argc, char** argv) {
  open_provider(argc, argv);
  solves_and_multiplies<double>();
  solves_and_multiplies<float>();
  return 0;
}
