// Extern operators of torch.linalg: batches of linear systems.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "capi/graph/singular.h"
#include "capi/lanes/kernels.h"
#include "capi/provider/elements.h"
#include "capi/provider/exports.h"
#include "capi/provider/operators.h"
#include "capi/tensor/scratch.h"

namespace neml2_capi::aoti::builtin {
namespace {

// Results of a factorisation, for every matrix of a batch, in torch's layouts.
struct Factors {
  Tensor lu;      // (*batch, n, n), column-major
  Tensor pivots;  // (*batch, n), int32
  Tensor info;    // (*batch), int32
};

// View of a tensor with a batch and, last, the axis of the equations or unknowns and the axis of the right-hand sides.
struct Columns {
  const Tensor& tensor;
  Dims sizes, strides;

  Dims batch() const { return sizes.first(sizes.size() - 2); }
};

void expect_square(const Tensor& a, const char* operation) {
  const std::int64_t n = a.ndim();
  if (n < 2 || a.sizes()[n - 2] != a.sizes()[n - 1])
    throw std::invalid_argument(std::string(operation) + " of a matrix that is not square: " + a.sizes().str());
}

// Makes room for the info and, if wanted, for the factors: packages seldom read them, and writing them takes as long
// as finding them.
Factors empty_factors(const Tensor& a, bool wanted) {
  const std::int64_t axes = a.ndim() - 2;
  Factors factors;
  if (wanted) factors.lu = empty_strided(a.dtype(), a.sizes(), column_major(a.sizes()));
  if (wanted) factors.pivots = Tensor::empty(DType::int32, a.sizes().first(axes + 1));
  factors.info = Tensor::empty(DType::int32, a.sizes().first(axes));
  return factors;
}

// Computes x = A^-1 b for matrices and right-hand sides that correspond one to one (b may repeat), and the factors of A
// if there is memory for them; only the factors if there are no right-hand sides. A singular matrix gives NaN.
void solve_each(const Tensor& a, const Columns& b, const Columns& x, const Factors& factors) {
  const std::int64_t axes = a.ndim() - 2, n = a.sizes().back();
  const Dims batch = a.sizes().first(axes), b_strides = broadcast_strides(b.sizes, b.strides, x.sizes);
  const lanes::SystemLayout layout = {n,
                                      x.sizes[axes + 1],
                                      a.strides()[axes],
                                      a.strides()[axes + 1],
                                      b_strides[axes],
                                      b_strides[axes + 1],
                                      x.strides[axes],
                                      x.strides[axes + 1]};
  visit_real(a.dtype(), "a linear solve", [&]<class T>(std::type_identity<T>) {
    lanes::Batch<T, Scratch> systems(layout);
    lanes::System<T> next = {nullptr,
                             nullptr,
                             nullptr,
                             factors.info.data_as<std::int32_t>(),
                             factors.lu.data_as<T>(),
                             factors.pivots.data_as<std::int32_t>()};
    walk<3>(batch, {a.strides().first(axes), b_strides.first(axes), x.strides.first(axes)}, [&](const auto& at) {
      next.a = a.data_as<T>() + at[0];
      next.b = b.tensor.data_as<T>() + at[1];
      next.x = x.tensor.data_as<T>() + at[2];
      systems.add(next);
      ++next.info;
      if (next.lu) next.lu += n * n, next.pivots += n;
    });
    systems.solve();
  });
}

// Computes x = A^-1 b, or b A^-1 if not `left`, from the factors of A, which may repeat.
void substitute(const Factors& factors, const Columns& b, const Columns& x, bool left) {
  const std::int64_t axes = x.sizes.size() - 2;
  const std::int64_t unknown = left ? axes : axes + 1, side = left ? axes + 1 : axes;
  const std::int64_t n = x.sizes[unknown], sides = x.sizes[side];
  const Dims batch = x.batch(), b_strides = broadcast_strides(b.sizes, b.strides, x.sizes);
  // These strides give the number of the matrix for an index in the batch of the result.
  const Dims matrices = factors.info.sizes();
  const Dims matrix_strides = broadcast_strides(matrices, matrices.row_major(), batch);
  if (x.tensor.numel() == 0) return;

  visit_real(x.tensor.dtype(), "a linear solve", [&]<class T>(std::type_identity<T>) {
    Scratch scratch(n * static_cast<std::int64_t>(sizeof(T)));
    T* const column = scratch.as<T>();
    walk<3>(batch, {matrix_strides, b_strides.first(axes), x.strides.first(axes)}, [&](const auto& at) {
      const bool singular = factors.info.data_as<std::int32_t>()[at[0]] != 0;
      for (std::int64_t j = 0; j < sides; ++j) {
        const T* from = b.tensor.data_as<T>() + at[1] + j * b_strides[side];
        T* to = x.tensor.data_as<T>() + at[2] + j * x.strides[side];
        for (std::int64_t i = 0; i < n; ++i) column[i] = from[i * b_strides[unknown]];
        if (singular)
          std::fill_n(column, n, std::numeric_limits<T>::quiet_NaN());
        else
          lanes::kernels<T>().substitute(factors.lu.data_as<T>() + at[0] * n * n,
                                         factors.pivots.data_as<std::int32_t>() + at[0] * n, n, !left, column);
        for (std::int64_t i = 0; i < n; ++i) to[i * x.strides[unknown]] = column[i];
      }
    });
  });
}

struct Solution {
  Tensor x;
  Factors factors;
};

// Returns A^-1 B by torch's rules: B is a batch of vectors if it is a vector or has the batch and rows of A.
Solution solve(const Tensor& a, const Tensor& b, bool left, bool factors_wanted) {
  const std::int64_t n = a.sizes().back();
  const bool vectors = b.ndim() == 1 || (b.ndim() == a.ndim() - 1 && b.sizes() == a.sizes().first(a.ndim() - 1));
  if (a.dtype() != b.dtype() || b.ndim() == 0 || (vectors && !left))
    throw std::invalid_argument("a linear solve of " + a.sizes().str() + " " + name_of(a.dtype()) + " and " +
                                b.sizes().str() + " " + name_of(b.dtype()));
  Columns from{b, b.sizes(), b.strides()};
  if (vectors) {
    from.sizes.push_back(1);
    from.strides.push_back(0);
  }
  const std::int64_t axes = from.sizes.size() - 2;
  if (from.sizes[left ? axes : axes + 1] != n)
    throw std::invalid_argument("a linear solve of matrices " + a.sizes().str() + " and right-hand sides " +
                                b.sizes().str());
  const Dims matrices = a.sizes().first(a.ndim() - 2), batch = broadcast(matrices, from.batch());
  const Dims sizes = batch.then(from.sizes.last(2));
  const Dims result_sizes = vectors ? sizes.first(sizes.size() - 1) : sizes;
  const Dims strides = left ? column_major(result_sizes) : result_sizes.row_major();
  const Tensor result = empty_strided(a.dtype(), result_sizes, strides);
  Columns to{result, sizes, strides};
  if (vectors) to.strides.push_back(0);

  const bool one_to_one = left && batch == matrices;
  const Factors factors = empty_factors(a, factors_wanted || !one_to_one);
  if (one_to_one) {
    solve_each(a, from, to, factors);
  } else {
    const Dims none = matrices.then({n, 0});
    solve_each(a, {a, none, none.row_major()}, {a, none, none.row_major()}, factors);
    substitute(factors, from, to, left);
  }
  return {result, factors};
}

void report(RunContext& run, const Tensor& info) {
  if (info.dtype() != DType::int32) throw std::invalid_argument("the info of a linear solve is not int32");
  const Tensor ordered = info.row_major();
  graph::report_singular(run.singular, ordered.data_as<std::int32_t>(), ordered.numel());
}

}  // namespace

void linalg_solve_ex(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t*) {
  const Tensor &a = *tensors[0], &b = *tensors[1];
  expect_square(a, "a linear solve");
  const bool factors_wanted = node.outputs[1].is_read || node.outputs[2].is_read;
  Solution solution = solve(a, b, flag(node, "left", true), factors_wanted);
  if (flag(node, "check_errors", false)) report(run, solution.factors.info);
  *tensors[2] = std::move(solution.x);
  *tensors[3] = std::move(solution.factors.lu);
  *tensors[4] = std::move(solution.factors.pivots);
  *tensors[5] = std::move(solution.factors.info);
}

void linalg_inv_ex(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t*) {
  const Tensor& a = *tensors[0];
  expect_square(a, "an inverse");
  const std::int64_t n = a.sizes().back(), axes = a.ndim() - 2;
  // The identity is a view of (0, ..., 0, 1, 0, ..., 0): element (i, j) stands i - j places from the middle.
  const Tensor middle = Tensor::zeros(a.dtype(), {2 * n + 1});
  const Tensor identity(middle.storage(), a.dtype(), {n, n}, {1, -1}, n);
  visit_real(a.dtype(), "an inverse", [&]<class T>(std::type_identity<T>) { middle.data_as<T>()[n] = T(1); });
  const Tensor inverse = empty_strided(a.dtype(), a.sizes(), column_major(a.sizes()));
  const Factors factors{{}, {}, Tensor::empty(DType::int32, a.sizes().first(axes))};
  solve_each(a, {identity, identity.sizes(), identity.strides()}, {inverse, inverse.sizes(), inverse.strides()},
             factors);
  *tensors[1] = inverse;
  *tensors[2] = factors.info;
  if (flag(node, "check_errors", false)) report(run, factors.info);
}

void linalg_check_errors(RunContext& run, const OperatorNode&, Tensor* const* tensors, const std::int64_t*) {
  report(run, *tensors[0]);
}

}  // namespace neml2_capi::aoti::builtin
