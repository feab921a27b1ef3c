#include "capi/segments/flat_system.h"

#include <algorithm>
#include <utility>

#include "capi/base/error.h"
#include "capi/segments/misfit.h"
#include "capi/tensor/rows.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {

FlatSystem::FlatSystem(const ImplicitSegment& segment, Operands at, std::size_t first_unknown, bool whole_batch)
    : segment_(segment), start_(std::move(at)), system_(segment.system(start_, whole_batch)) {
  for (const ValueGroup& group : segment.unknowns()) {
    const std::int64_t width = group.row_shape().back();
    const std::int64_t pieces = group.row_shape().first(group.row_shape().size() - 1).product();
    std::int64_t offset = size_;
    for (std::size_t i = 0; i < group.values().size(); ++i) {
      const std::int64_t piece_size = group.point_shape(i).product() / std::max<std::int64_t>(pieces, 1);
      places_.push_back({first_unknown++, offset, pieces, width, piece_size});
      offset += piece_size;
    }
    size_ += group.row_shape().product();
  }
}

// Calls f(values, position in a flat vector, their number) for the row of each group and point.
template <class F>
void FlatSystem::for_each_row(const Groups& groups, F&& f) const {
  std::int64_t offset = 0;
  for (const Tensor& group : groups) {
    const std::int64_t n = row_size(group);
    with_scalar(group.dtype(), [&]<class Scalar>(Scalar*) {
      for (std::int64_t p = 0; p < points(); ++p) f(group.data_as<Scalar>() + p * n, p * size_ + offset, n);
    });
    offset += n;
  }
}

Groups FlatSystem::unflatten(const double* flat) const {
  Groups groups;
  for (const Tensor& like : start_.unknowns) groups.push_back(Tensor::empty(like.dtype(), like.sizes()));
  for_each_row(groups, [&]<class Scalar>(Scalar* row, std::int64_t first, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) row[i] = static_cast<Scalar>(flat[first + i]);
  });
  return groups;
}

void FlatSystem::flatten(const Groups& groups, double* flat, double factor) const {
  std::int64_t total = 0;
  for (const Tensor& group : groups) total += row_size(group);
  if (total != size_) throw misfit("residual", "A segment has ", total, " residuals for ", size_, " unknowns");
  for_each_row(groups, [&](const auto* row, std::int64_t first, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) flat[first + i] = factor * static_cast<double>(row[i]);
  });
}

// The packages return -r.
void FlatSystem::residual(double* r, const double* u) { flatten(system_->residual(unflatten(u)), r, -1.0); }

void FlatSystem::step(double* du, std::int32_t* singular, const double* u) {
  Vector<std::int32_t> info;
  system_->linearize(unflatten(u));
  flatten(system_->step(info), du, 1.0);
  if (singular) std::transform(info.begin(), info.end(), singular, [](std::int32_t pivot) { return pivot != 0; });
}

void FlatSystem::jacobian(double* a, const double* u) const {
  const Tensor matrix = segment_.jacobian(operands(u));
  with_scalar(matrix.dtype(),
              [&]<class Scalar>(Scalar*) { std::copy_n(matrix.data_as<const Scalar>(), matrix.numel(), a); });
}

void FlatSystem::matvec(double* y, const double* u, const double* v) const {
  if (const auto product = segment_.matvec(operands(u), unflatten(v))) {
    flatten(*product, y, 1.0);
    return;
  }
  Vector<double> a(static_cast<std::size_t>(points() * size_ * size_)), row(static_cast<std::size_t>(size_));
  jacobian(a.data(), u);
  for (std::int64_t p = 0; p < points(); ++p) {
    std::copy_n(v + p * size_, size_, row.begin());
    for (std::int64_t i = 0; i < size_; ++i) {
      const double* coefficients = a.data() + (p * size_ + i) * size_;
      double sum = 0;
      for (std::int64_t j = 0; j < size_; ++j) sum += coefficients[j] * row[static_cast<std::size_t>(j)];
      y[p * size_ + i] = sum;
    }
  }
}

Operands FlatSystem::operands(const double* u) const { return {unflatten(u), start_.givens, start_.parameters}; }

Vector<double> FlatSystem::norms(const Groups& u) {
  Vector<double> norms;
  norm(system_->residual(u), norms);
  return norms;
}

}  // namespace neml2_capi::model
