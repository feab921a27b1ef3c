// The arrays of callers: broadcasting, overlap, and runs of equal values.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "capi/values/broadcast.h"
#include "capi/values/points.h"

namespace {

using namespace neml2_capi;
using namespace neml2_capi::model;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

const Variable stress{"stress", "SR2", DType::float64, {6}, 0};
const Variable slip{"slip", "Scalar", DType::float64, {}, 0};

void batches_broadcast_as_in_numpy() {
  expect(broadcast({}, {3}) == Dims{3}, "no batch and one");
  expect(broadcast({2, 1}, {3}) == Dims({2, 3}), "one axis is aligned at the last");
  expect(broadcast({1}, {0}) == Dims{0}, "an empty batch wins over one point");
  expect(!broadcast({2}, {3}), "unequal sizes do not broadcast");
}

void a_repeated_batch_is_laid_out() {
  double values[] = {1, 2, 3};
  Tensor row = Tensor::borrow(values, DType::float64, {3});
  const Points points = as_points(row, {2, 3}, {});
  expect(points.stride == 1, "one value per point");
  for (std::int64_t p = 0; p < 6; ++p)
    expect(*reinterpret_cast<double*>(point(points, p, 8)) == values[p % 3], "the rows repeat");
  Tensor column = Tensor::borrow(values, DType::float64, {3, 1});
  const Points columns = as_points(column, {3, 2}, {});
  for (std::int64_t p = 0; p < 6; ++p)
    expect(*reinterpret_cast<double*>(point(columns, p, 8)) == values[p / 2], "the columns repeat");
}

void one_value_and_dense_values_are_not_copied() {
  double values[12] = {};
  Tensor one = Tensor::borrow(values, DType::float64, {6});
  const Points repeated = as_points(one, {2}, {6});
  expect(repeated.stride == 0 && repeated.data == reinterpret_cast<char*>(values), "one value has the stride 0");
  Tensor all = Tensor::borrow(values, DType::float64, {2, 6});
  const Points dense = as_points(all, {2}, {6});
  expect(dense.stride == 6 && dense.data == reinterpret_cast<char*>(values), "dense values stay where they are");
}

void arrays_overlap_where_they_share_an_element() {
  double memory[100];
  const auto at = [&](int offset, std::int64_t stride) {
    return Points{reinterpret_cast<char*>(memory + offset), stride};
  };
  expect(overlap(at(0, 6), stress, at(0, 6), stress, {5}), "an array and itself");
  expect(!overlap(at(0, 6), stress, at(30, 6), stress, {5}), "one after the other");
  expect(overlap(at(0, 6), stress, at(29, 6), stress, {5}), "one element in common");
  expect(!overlap(at(0, 12), stress, at(6, 12), stress, {5}), "interleaved, beside each other");
  expect(!overlap(at(6, 13), stress, at(12, 13), slip, {5}), "interleaved with a scalar");
  expect(overlap(at(0, 12), stress, at(5, 12), stress, {5}), "interleaved with one element in common");
  expect(overlap(at(8, 12), stress, at(0, 12), stress, {5}), "interleaved across the end of a stride");
  expect(overlap(at(0, 0), stress, at(3, 12), stress, {5}), "one value for all inside an array");
  expect(overlap(at(0, 7), stress, at(6, 12), stress, {5}), "unequal strides are not told apart");

  const auto stepping = [&](int offset, std::int64_t stride, std::int64_t step) {
    Points array = at(offset, stride);
    array.step = step;
    return array;
  };
  const Extent steps = {5, 3};
  expect(!overlap(stepping(0, 6, 30), stress, at(90, 6), stress, steps), "a row behind the last step");
  expect(overlap(stepping(0, 6, 30), stress, at(60, 6), stress, steps), "a row that is the last step");
  expect(!overlap(stepping(0, 12, 60), stress, stepping(6, 12, 60), stress, steps), "interleaved in each step");
  expect(!overlap(stepping(0, 36, 12), stress, stepping(6, 36, 12), stress, steps), "interleaved, steps within points");
  expect(overlap(stepping(0, 12, 60), stress, stepping(5, 12, 60), stress, steps), "interleaved with one in common");
  expect(!overlap(stepping(0, 6, 30), stress, at(30, 6), stress, {5, 1}), "one step reaches no further");
  expect(!steps_overlap(stepping(0, 6, 30), stress, steps), "steps one after the other");
  expect(!steps_overlap(stepping(0, 18, 6), stress, steps), "the steps of a point one after the other");
  expect(steps_overlap(stepping(0, 6, 29), stress, steps), "steps with one element in common");
  expect(steps_overlap(stepping(0, 6, 6), stress, steps), "a step over the next point");
}

void runs_of_equal_values_are_counted() {
  double memory[] = {1, 1, 1, 2, 2, 1};
  const Points values{reinterpret_cast<char*>(memory), 1};
  expect(length_of_equal(values, slip, 0, 6) == 3, "from the first");
  expect(length_of_equal(values, slip, 0, 2) == 2, "not beyond the limit");
  expect(length_of_equal(values, slip, 3, 3) == 2, "from the middle");
  expect(length_of_equal({values.data, 0}, slip, 0, 6) == 6, "one value for all");
}

void failed_points_are_left_or_marked() {
  double value[] = {1, 2, 3}, out[] = {9, 9, 9};
  const Tensor tensor = Tensor::borrow(value, DType::float64, {3});
  const Vector<std::int32_t> status = {NEML2_OK, NEML2_NOT_CONVERGED, NEML2_NON_FINITE};
  scatter(tensor, slip, {reinterpret_cast<char*>(out), 1}, 0, status, false);
  expect(out[0] == 1 && out[1] == 9 && out[2] == 3, "a failed point is left as it was");
  scatter(tensor, slip, {reinterpret_cast<char*>(out), 1}, 0, status, true);
  expect(out[0] == 1 && out[1] != out[1] && out[2] == 3, "or becomes NaN");
}

// Of rows of `size` numbers, in an array where points lie `stride` numbers apart.
template <class Scalar>
void check_write_finite(std::int64_t points, std::int64_t size, std::int64_t stride) {
  const DType dtype = sizeof(Scalar) == 8 ? DType::float64 : DType::float32;
  const Variable variable{"x", "", dtype, {size}, 0};
  std::vector<Scalar> values(static_cast<std::size_t>(points * size)), out(static_cast<std::size_t>(points * stride));
  const Tensor tensor = Tensor::borrow(values.data(), dtype, {points, size});
  const Points array{reinterpret_cast<char*>(out.data()), stride};
  // Finite ones first, among them those with the greatest exponent; then, at each place, one that is not.
  for (std::size_t bad = 0; bad <= values.size(); ++bad) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = i % 3 ? static_cast<Scalar>(i) : -std::numeric_limits<Scalar>::max();
    const bool finite = bad == values.size();
    constexpr Scalar infinity = std::numeric_limits<Scalar>::infinity();
    const Scalar numbers[] = {infinity, -infinity, std::numeric_limits<Scalar>::quiet_NaN(),
                              -std::numeric_limits<Scalar>::quiet_NaN()};
    if (!finite) values[bad] = numbers[bad % 4];
    std::fill(out.begin(), out.end(), Scalar{-7});
    expect(write_finite(tensor, variable, array, 0, points) == finite, "one that is not finite is found anywhere");
    expect(write_finite(tensor, variable, {}, 0, points) == finite, "nothing need be bound");
    for (std::int64_t p = 0; p < points; ++p) {
      const Scalar* row = out.data() + p * stride;
      expect(std::memcmp(row, values.data() + p * size, static_cast<std::size_t>(size) * sizeof(Scalar)) == 0,
             "what is not finite is written as it is");
      expect(std::all_of(row + size, row + stride, [](Scalar gap) { return gap == -7; }), "a gap is left as it was");
    }
  }
}

void results_are_checked_while_they_are_written() {
  for (std::int64_t points : {1, 2, 3, 5, 8, 17})
    for (std::int64_t size : {1, 2, 3, 6, 36})
      for (std::int64_t gap : {0, 1, 5}) {
        check_write_finite<double>(points, size, size + gap);
        check_write_finite<float>(points, size, size + gap);
      }
  std::int64_t counts[] = {INT64_MAX, -1};
  const Tensor whole = Tensor::borrow(counts, DType::int64, {2});
  std::int64_t out[] = {0, 0};
  expect(write_finite(whole, {"n", "", DType::int64, {}, 0}, {reinterpret_cast<char*>(out), 1}, 0, 2) &&
             out[0] == INT64_MAX && out[1] == -1,
         "integers are always finite");
}

template <class Scalar>
void check_transposed(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t points = 3, sites = 2;
  const DType dtype = sizeof(Scalar) == 8 ? DType::float64 : DType::float32;
  const std::int64_t size = rows * columns;
  std::vector<Scalar> values(static_cast<std::size_t>(points * sites * size));
  std::iota(values.begin(), values.end(), Scalar{1});
  const Tensor matrices = Tensor::borrow(values.data(), dtype, {points, sites, rows, columns});
  const Tensor tensor = transposed(matrices, rows, columns);
  for (std::int64_t k = 0; k < points * sites; ++k)
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t c = i / rows, r = i % rows;
      const Scalar expected = values[static_cast<std::size_t>(k * size + r * columns + c)];
      expect(tensor.data_as<Scalar>()[k * size + i] == expected, "each matrix is transposed");
    }
}

// The columns of a package's block may stand side by side.
void a_value_may_have_any_strides() {
  for (const std::int64_t n : {2, 5, 6}) {
    const Variable block{"block", "SSR4", DType::float64, {n, n}, 0};
    std::vector<double> values(static_cast<std::size_t>(3 * n * n));
    std::iota(values.begin(), values.end(), 0.0);
    for (const std::int64_t rows : {3, 1}) {
      const Tensor whole = Tensor::borrow(values.data(), DType::float64, {rows, n, n});
      const Tensor columns(whole.storage(), DType::float64, {rows, n, n}, {n * n, 1, n}, whole.offset());
      for (const std::int64_t apart : {n * n, n * n + 4}) {
        std::vector<double> out(static_cast<std::size_t>(3 * apart), -1.0);
        write_rows(columns, block, {reinterpret_cast<char*>(out.data()), apart}, 0, 3);
        for (std::int64_t i = 0; i < 3 * apart; ++i) {
          const std::int64_t p = i / apart, k = i % apart, row = k / n, column = k % n;
          const double expected = k < n * n ? static_cast<double>((p % rows) * n * n + column * n + row) : -1.0;
          expect(out[static_cast<std::size_t>(i)] == expected, "columns are written as rows");
        }
      }
    }
  }
}

void blocks_are_transposed() {
  for (std::int64_t rows : {1, 2, 3, 6, 7})
    for (std::int64_t columns : {1, 2, 5, 6}) {
      check_transposed<double>(rows, columns);
      check_transposed<float>(rows, columns);
    }
}

}  // namespace

int main() {
  batches_broadcast_as_in_numpy();
  a_repeated_batch_is_laid_out();
  one_value_and_dense_values_are_not_copied();
  arrays_overlap_where_they_share_an_element();
  runs_of_equal_values_are_counted();
  failed_points_are_left_or_marked();
  results_are_checked_while_they_are_written();
  a_value_may_have_any_strides();
  blocks_are_transposed();
  std::puts("points: all passed");
  return 0;
}
