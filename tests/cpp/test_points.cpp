// The arrays of callers: broadcasting, overlap, and runs of equal values.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "capi/model/broadcast.h"
#include "capi/model/points.h"

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
  expect(overlap(at(0, 6), stress, at(0, 6), stress, 5), "an array and itself");
  expect(!overlap(at(0, 6), stress, at(30, 6), stress, 5), "one after the other");
  expect(overlap(at(0, 6), stress, at(29, 6), stress, 5), "one element in common");
  expect(!overlap(at(0, 12), stress, at(6, 12), stress, 5), "interleaved, beside each other");
  expect(!overlap(at(6, 13), stress, at(12, 13), slip, 5), "interleaved with a scalar");
  expect(overlap(at(0, 12), stress, at(5, 12), stress, 5), "interleaved with one element in common");
  expect(overlap(at(8, 12), stress, at(0, 12), stress, 5), "interleaved across the end of a stride");
  expect(overlap(at(0, 0), stress, at(3, 12), stress, 5), "one value for all inside an array");
  expect(overlap(at(0, 7), stress, at(6, 12), stress, 5), "unequal strides are not told apart");
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

}  // namespace

int main() {
  batches_broadcast_as_in_numpy();
  a_repeated_batch_is_laid_out();
  one_value_and_dense_values_are_not_copied();
  arrays_overlap_where_they_share_an_element();
  runs_of_equal_values_are_counted();
  failed_points_are_left_or_marked();
  std::puts("points: all passed");
}
