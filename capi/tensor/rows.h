// Arithmetic on rows of groups. A row belongs to one material point, and is always summed in the same order, so that a
// point's numbers do not depend on its neighbours.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// Tensors of the same points side by side, each row-major with one row per point.
using Groups = Vector<Tensor>;

// Calls f with a null pointer of the element type.
template <class F>
decltype(auto) with_scalar(DType dtype, F&& f) {
  if (dtype == DType::float32) return f(static_cast<float*>(nullptr));
  return f(static_cast<double*>(nullptr));
}

inline std::int64_t row_size(const Tensor& group) { return group.sizes().last(group.ndim() - 1).product(); }

// a . b, row by row.
inline void dot(const Groups& a, const Groups& b, Vector<double>& out) {
  const std::int64_t rows = a.front().sizes()[0];
  out.assign(static_cast<std::size_t>(rows), 0.0);
  for (std::size_t k = 0; k < a.size(); ++k)
    with_scalar(a[k].dtype(), [&]<class Scalar>(Scalar*) {
      const std::int64_t n = row_size(a[k]);
      const Scalar* x = a[k].data_as<const Scalar>();
      const Scalar* y = b[k].data_as<const Scalar>();
      for (std::int64_t r = 0; r < rows; ++r) {
        double sum = out[static_cast<std::size_t>(r)];
        for (std::int64_t i = r * n; i < (r + 1) * n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
        out[static_cast<std::size_t>(r)] = sum;
      }
    });
}

inline void norm(const Groups& a, Vector<double>& out) {
  dot(a, a, out);
  for (double& value : out) value = std::sqrt(value);
}

// u + alpha du, row by row, in new tensors; u + du without alpha.
inline Groups plus(const Groups& u, const Groups& du, const Vector<double>& alpha = {}) {
  Groups out;
  out.reserve(u.size());
  for (std::size_t k = 0; k < u.size(); ++k) {
    out.push_back(Tensor::empty(u[k].dtype(), u[k].sizes()));
    with_scalar(u[k].dtype(), [&]<class Scalar>(Scalar*) {
      const std::int64_t rows = u[k].sizes()[0], n = row_size(u[k]);
      const Scalar* x = u[k].data_as<const Scalar>();
      const Scalar* d = du[k].data_as<const Scalar>();
      Scalar* y = out[k].data_as<Scalar>();
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto a = alpha.empty() ? Scalar(1) : static_cast<Scalar>(alpha[static_cast<std::size_t>(r)]);
        for (std::int64_t i = 0; i < n; ++i) y[r * n + i] = x[r * n + i] + a * d[r * n + i];
      }
    });
  }
  return out;
}

// Copies row `from` of `source` to row `to` of `target`.
inline void copy_row(const Groups& source, std::int64_t from, Groups& target, std::int64_t to) {
  for (std::size_t k = 0; k < source.size(); ++k) {
    const std::int64_t bytes = row_size(source[k]) * source[k].itemsize();
    std::memcpy(target[k].data_as<char>() + to * bytes, source[k].data_as<const char>() + from * bytes,
                static_cast<std::size_t>(bytes));
  }
}

// Returns the given rows of one group, or of all.
Tensor select_rows(const Tensor& group, const Vector<std::int64_t>& rows);
Groups select_rows(const Groups& groups, const Vector<std::int64_t>& rows);

}  // namespace neml2_capi
