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

Sums::Sums(const Model& model, const Bindings& bindings, std::int64_t begin, std::int64_t points)
    : model_(model), rows_(begin, points) {
  for (const Part part : {Part::adjoint, Part::parameter_adjoint})
    for (std::size_t i = 0; i < bindings.of(part).size(); ++i)
      if (const Points& all = bindings.of(part)[i]; is_one_value(all))
        sums_.push_back({part, i, all, rows_.add(model.variable(part, i), false)});
}

void Sums::replace(Bindings& bindings) const {
  for (const Sum& sum : sums_) bindings.of(sum.part)[sum.index] = sum.rows;
}

void Sums::write() const {
  if (sums_.empty()) return;
  const Vector<std::int32_t> good(static_cast<std::size_t>(rows_.points()), NEML2_OK);
  for (std::size_t k = 0; k < sums_.size(); ++k)
    accumulate(rows_[k], model_.variable(sums_[k].part, sums_[k].index), sums_[k].all, good, false);
}

}  // namespace neml2_capi::model
