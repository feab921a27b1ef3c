#include "capi/graph/dense.h"

#include <stdexcept>

#include "capi/base/error.h"
#include "capi/lanes/kernels.h"
#include "capi/tensor/scratch.h"

namespace neml2_capi::graph {
namespace {

void expect_fit(const Tensor& a, const Tensor& b) {
  const bool fit = a.ndim() == 3 && a.sizes()[1] == a.sizes()[2] && (b.ndim() == 2 || b.ndim() == 3) &&
                   b.sizes()[0] == a.sizes()[0] && b.sizes()[1] == a.sizes()[1] && a.dtype() == b.dtype();
  if (!fit)
    throw std::invalid_argument(join("a linear solve of matrices ", a.sizes().str(), " ", name_of(a.dtype()),
                                     " and right-hand sides ", b.sizes().str(), " ", name_of(b.dtype())));
}

// Returns vectors as matrices of one column.
Tensor as_columns(const Tensor& b) {
  if (b.ndim() == 3) return b;
  return Tensor(b.storage(), b.dtype(), b.sizes().then({1}), b.strides().then({1}), b.offset());
}

// Solves A x = b: (p, n, n) and (p, n, m) give (p, n, m), and LAPACK's info of each matrix.
template <class T>
void solve_systems(const Tensor& a, const Tensor& b, const Tensor& x, std::int32_t* info) {
  lanes::Batch<T, Scratch> batch({a.sizes()[1], b.sizes()[2], a.strides()[1], a.strides()[2], b.strides()[1],
                                  b.strides()[2], x.strides()[1], x.strides()[2]});
  lanes::System<T> next = {a.data_as<T>(), b.data_as<T>(), x.data_as<T>(), info, nullptr, nullptr};
  for (std::int64_t i = 0; i < a.sizes()[0]; ++i) {
    batch.add(next);
    next.a += a.strides()[0], next.b += b.strides()[0], next.x += x.strides()[0], ++next.info;
  }
  batch.solve();
}

}  // namespace

Tensor solve_linear(const Tensor& a, const Tensor& b, SingularInfo* singular) {
  expect_fit(a, b);
  // Solutions are column-major, as torch returns them.
  const std::int64_t systems = a.sizes()[0], n = a.sizes()[1], sides = b.ndim() == 3 ? b.sizes()[2] : 1;
  const Tensor x(Storage::allocate_in_run(systems * n * sides * a.itemsize()), a.dtype(), {systems, n, sides},
                 {n * sides, 1, n});
  Vector<std::int32_t> info(static_cast<std::size_t>(systems));
  if (a.dtype() == DType::float32)
    solve_systems<float>(a, as_columns(b), x, info.data());
  else
    solve_systems<double>(a, as_columns(b), x, info.data());
  report_singular(singular, info.data(), systems);
  return b.ndim() == 3 ? x : Tensor(x.storage(), x.dtype(), {systems, n}, {n, 1});
}

}  // namespace neml2_capi::graph
