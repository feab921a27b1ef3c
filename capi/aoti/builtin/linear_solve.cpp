// Batches of linear systems: the extern operators of torch.linalg.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "capi/aoti/builtin/elements.h"
#include "capi/aoti/builtin/lu.h"
#include "capi/aoti/builtin/operators.h"

namespace neml2_capi::aoti::builtin {
namespace {

// The factors of every matrix of a batch, in torch's layouts.
struct Factors {
  Tensor lu;      // (*batch, n, n), column-major
  Tensor pivots;  // (*batch, n), int32
  Tensor info;    // (*batch), int32
};

Factors factorise(const Tensor& a, const char* operation) {
  const std::int64_t axes = a.ndim() - 2;
  if (axes < 0 || a.sizes()[axes] != a.sizes()[axes + 1])
    throw std::invalid_argument(std::string(operation) + " of a matrix that is not square: " + a.sizes().str());
  const std::int64_t n = a.sizes().back();
  const Dims batch = a.sizes().first(axes);
  Factors out{empty_strided(a.dtype(), a.sizes(), column_major(a.sizes())),
              Tensor::empty(DType::int32, a.sizes().first(axes + 1)), Tensor::empty(DType::int32, batch)};
  copy_elements(out.lu, a);
  visit_real(a.dtype(), operation, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t m = 0; m < batch.product(); ++m)
      out.info.data_as<std::int32_t>()[m] =
          lu::factorise(out.lu.data_as<T>() + m * n * n, out.pivots.data_as<std::int32_t>() + m * n, n);
  });
  return out;
}

// Views of `tensor` with a batch and, last, the axis of the unknowns and the axis of the right-hand sides.
struct Columns {
  Dims sizes, strides;
};

// result = A^-1 b, or b A^-1 where not `left`, from the factors of A. A singular matrix gives NaN.
void solve(const Factors& factors, const Tensor& b, const Columns& from, const Tensor& result, const Columns& to,
           bool left) {
  const std::int64_t axes = to.sizes.size() - 2;
  const std::int64_t unknown = left ? axes : axes + 1, side = left ? axes + 1 : axes;
  const std::int64_t n = to.sizes[unknown], sides = to.sizes[side];
  const Dims batch = to.sizes.first(axes);
  const Dims b_strides = broadcast_strides(from.sizes, from.strides, to.sizes);
  // The number of the matrix, by the index in the batch of the result.
  const Dims matrices = factors.info.sizes();
  const Dims matrix_strides = broadcast_strides(matrices, matrices.row_major(), batch);
  if (result.numel() == 0) return;

  visit_real(result.dtype(), "a linear solve", [&]<class T>(std::type_identity<T>) {
    std::vector<T> x(static_cast<std::size_t>(n));
    walk<3>(batch, {matrix_strides, b_strides.first(axes), to.strides.first(axes)}, [&](const auto& at) {
      const T* lu = factors.lu.data_as<T>() + at[0] * n * n;
      const std::int32_t* pivots = factors.pivots.data_as<std::int32_t>() + at[0] * n;
      const bool singular = factors.info.data_as<std::int32_t>()[at[0]] != 0;
      for (std::int64_t j = 0; j < sides; ++j) {
        const T* in = b.data_as<T>() + at[1] + j * b_strides[side];
        T* out = result.data_as<T>() + at[2] + j * to.strides[side];
        if (singular) {
          for (std::int64_t i = 0; i < n; ++i) out[i * to.strides[unknown]] = std::numeric_limits<T>::quiet_NaN();
          continue;
        }
        for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = in[i * b_strides[unknown]];
        if (left)
          lu::solve(lu, pivots, n, x.data());
        else
          lu::solve_transposed(lu, pivots, n, x.data());
        for (std::int64_t i = 0; i < n; ++i) out[i * to.strides[unknown]] = x[static_cast<std::size_t>(i)];
      }
    });
  });
}

// (A, B) -> A^-1 B with torch's rules: B is a batch of vectors where it is a vector or has the batch and rows of A.
Tensor solve(const Tensor& a, const Factors& factors, const Tensor& b, bool left) {
  const bool vectors = b.ndim() == 1 || (b.ndim() == a.ndim() - 1 && b.sizes() == a.sizes().first(a.ndim() - 1));
  if (a.dtype() != b.dtype() || b.ndim() == 0 || (vectors && !left))
    throw std::invalid_argument("a linear solve of " + a.sizes().str() + " " + name_of(a.dtype()) + " and " +
                                b.sizes().str() + " " + name_of(b.dtype()));
  Columns from{b.sizes(), b.strides()};
  if (vectors) {
    from.sizes.push_back(1);
    from.strides.push_back(0);
  }
  const std::int64_t axes = from.sizes.size() - 2;
  const std::int64_t n = a.sizes().back();
  if (from.sizes[left ? axes : axes + 1] != n)
    throw std::invalid_argument("a linear solve of matrices " + a.sizes().str() + " and right-hand sides " +
                                b.sizes().str());
  Dims sizes = broadcast(factors.info.sizes(), from.sizes.first(axes));
  sizes.append(from.sizes.last(2));
  const Dims result_sizes = vectors ? sizes.first(sizes.size() - 1) : sizes;
  const Dims strides = left ? column_major(result_sizes) : result_sizes.row_major();
  const Tensor result = empty_strided(a.dtype(), result_sizes, strides);
  Columns to{sizes, strides};
  if (vectors) to.strides.push_back(0);
  solve(factors, b, from, result, to, left);
  return result;
}

// One entry of `info` for `n` consecutive points, `n` being a multiple of its length: batches are the leading axes.
void merge(SingularInfo& singular, const std::int32_t* info, std::int64_t n) {
  if (n == 0) return;
  const auto size = static_cast<std::int64_t>(singular.size());
  const std::int64_t points = std::max(n, size);
  if (points % n != 0 || (size != 0 && points % size != 0))
    throw std::runtime_error("linear solves of batches of " + std::to_string(size) + " and " + std::to_string(n));
  SingularInfo merged(static_cast<std::size_t>(points));
  for (std::int64_t i = 0; i < points; ++i) {
    const std::int32_t before = size == 0 ? 0 : singular[static_cast<std::size_t>(i / (points / size))];
    merged[static_cast<std::size_t>(i)] = before != 0 ? before : info[i / (points / n)];
  }
  singular = std::move(merged);
}

void report(RunContext& run, const Tensor& info) {
  if (info.dtype() != DType::int32) throw std::invalid_argument("the info of a linear solve is not int32");
  const Tensor ordered = info.row_major();
  const std::int32_t* values = ordered.data_as<std::int32_t>();
  const std::int64_t n = ordered.numel();
  const std::int64_t first = std::find_if(values, values + n, [](std::int32_t i) { return i != 0; }) - values;
  if (first == n) return;
  if (!run.singular)
    throw std::runtime_error("matrix " + std::to_string(first + 1) + " of " + std::to_string(n) + " is singular");
  merge(*run.singular, values, n);
}

}  // namespace

void linalg_solve_ex(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t*) {
  const Tensor &a = *tensors[0], &b = *tensors[1];
  const Factors factors = factorise(a, "a linear solve");
  const Tensor result = solve(a, factors, b, flag(node, "left", true));
  *tensors[2] = result;
  *tensors[3] = factors.lu;
  *tensors[4] = factors.pivots;
  *tensors[5] = factors.info;
  if (flag(node, "check_errors", false)) report(run, factors.info);
}

void linalg_inv_ex(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t*) {
  const Tensor& a = *tensors[0];
  const Factors factors = factorise(a, "an inverse");
  const std::int64_t n = a.sizes().back();
  const Tensor identity = Tensor::zeros(a.dtype(), {n, n});
  visit_real(a.dtype(), "an inverse", [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < n; ++i) identity.data_as<T>()[i * (n + 1)] = T(1);
  });
  const Tensor inverse = empty_strided(a.dtype(), a.sizes(), column_major(a.sizes()));
  solve(factors, identity, {identity.sizes(), identity.strides()}, inverse, {inverse.sizes(), inverse.strides()}, true);
  *tensors[1] = inverse;
  *tensors[2] = factors.info;
  if (flag(node, "check_errors", false)) report(run, factors.info);
}

void linalg_check_errors(RunContext& run, const OperatorNode&, Tensor* const* tensors, const std::int64_t*) {
  report(run, *tensors[0]);
}

}  // namespace neml2_capi::aoti::builtin
