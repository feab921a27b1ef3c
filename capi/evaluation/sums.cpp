#include "capi/evaluation/sums.h"

namespace neml2_capi::model {

Points PointRows::add(const Variable& variable, bool nan) {
  const Dims sizes = Dims{points_}.then(variable.point_shape);
  rows_.push_back(nan ? Tensor::empty(variable.dtype, sizes) : Tensor::zeros(variable.dtype, sizes));
  const Tensor& rows = rows_.back();
  if (nan) fill_nan(rows.data_as<char>(), rows.dtype(), rows.numel());
  const std::int64_t size = variable.point_shape.product(), before = begin_ * size * rows.itemsize();
  return {reinterpret_cast<char*>(reinterpret_cast<std::intptr_t>(rows.data()) - before), size};
}

Sums::Sums(const std::vector<Points>& sums, const std::vector<Variable>& variables, std::int64_t begin,
           std::int64_t points)
    : sums_(sums), variables_(variables), rows_(begin, points) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (is_one_value(sums[i])) arrays_.push_back(rows_.add(variables[i], false));
}

void Sums::replace(std::vector<Points>& arrays) const {
  for (std::size_t i = 0, k = 0; k < arrays_.size(); ++i)
    if (is_one_value(sums_[i])) arrays[i] = arrays_[k++];
}

void Sums::write() const {
  if (arrays_.empty()) return;
  const Vector<std::int32_t> good(static_cast<std::size_t>(rows_.points()), NEML2_OK);
  for (std::size_t i = 0, k = 0; k < arrays_.size(); ++i)
    if (is_one_value(sums_[i])) accumulate(rows_[k++], variables_[i], sums_[i], good, false);
}

}  // namespace neml2_capi::model
