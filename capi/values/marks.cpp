#include "capi/values/marks.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "capi/tensor/rows.h"
#include "capi/values/finite.h"

namespace neml2_capi::model {
namespace {

template <class Visit>
bool with_floating(const Rows& rows, Visit&& visit) {
  if (!rows.data) return true;
  if (rows.dtype == DType::float64) return visit(reinterpret_cast<const double*>(rows.data));
  if (rows.dtype == DType::float32) return visit(reinterpret_cast<const float*>(rows.data));
  return true;
}

bool is_finite(const Rows& rows, std::int64_t p) {
  return with_floating(rows, [&]<class Scalar>(const Scalar* values) {
    return FiniteScan<Scalar>::run(values + p * rows.stride, rows.size);
  });
}

bool has_nan(const Rows& rows, std::int64_t p) {
  return !with_floating(rows, [&]<class Scalar>(const Scalar* values) {
    const Scalar* const row = values + p * rows.stride;
    return std::none_of(row, row + rows.size, [](Scalar x) { return std::isnan(x); });
  });
}

}  // namespace

Rows::Rows(const Tensor& value)
    : data(value.data_as<const char>()), size(value.data() ? row_size(value) : 0), dtype(value.dtype()) {
  if (value.data() && value.sizes()[0] > 1) stride = size;
}

Rows::Rows(const Points& array, const Variable& variable, std::int64_t begin)
    : data(array.data ? point(array, begin, itemsize(variable.dtype)) : nullptr),
      stride(array.stride),
      size(variable.point_shape.product()),
      dtype(variable.dtype) {}

bool all_finite(const Rows& rows, std::int64_t points) {
  return with_floating(rows, [&]<class Scalar>(const Scalar* values) {
    if (rows.stride == 0) return FiniteScan<Scalar>::run(values, rows.size);
    if (rows.stride == rows.size) return FiniteScan<Scalar>::run(values, points * rows.size);
    std::int64_t p = 0;
    while (p < points && FiniteScan<Scalar>::run(values + p * rows.stride, rows.size)) ++p;
    return p == points;
  });
}

void Marks::give(const Rows& rows, Named named) {
  if (all_finite(rows, std::ssize(status_))) return;
  given_.push_back({rows, named});
  for (std::size_t p = 0; p < status_.size(); ++p)
    if (status_[p] == NEML2_OK && has_nan(rows, static_cast<std::int64_t>(p))) mark(p, named);
}

void Marks::give(const std::vector<Points>& arrays, const std::vector<Variable>& variables, Part part) {
  for (std::size_t i = 0; i < arrays.size(); ++i)
    give(Rows(arrays[i], variables[i], begin_), {part, static_cast<std::int64_t>(i)});
}

void Marks::look(const Rows& rows, Named named) {
  if (all_finite(rows, std::ssize(status_))) return;
  for (std::size_t p = 0; p < status_.size(); ++p) {
    if (status_[p] != NEML2_OK || is_finite(rows, static_cast<std::int64_t>(p))) continue;
    const Given* const given = given_at(p);
    mark(p, given ? given->named : named);
  }
}

bool Marks::mark_if_given(std::size_t p) {
  const Given* const given = given_at(p);
  if (given) mark(p, given->named);
  return given != nullptr;
}

const Marks::Given* Marks::given_at(std::size_t p) const {
  const auto found = std::ranges::find_if(
      given_, [p](const Given& given) { return !is_finite(given.rows, static_cast<std::int64_t>(p)); });
  return found == given_.end() ? nullptr : &*found;
}

void Marks::mark(std::size_t p, Named named) {
  status_[p] = NEML2_NON_FINITE;
  const std::int64_t number = begin_ + static_cast<std::int64_t>(p);
  if (first_.point < 0 || number < first_.point) first_ = {number, named};
}

}  // namespace neml2_capi::model
