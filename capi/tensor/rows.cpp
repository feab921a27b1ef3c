#include "capi/tensor/rows.h"

namespace neml2_capi {

Tensor select_rows(const Tensor& group, const Vector<std::int64_t>& rows) {
  Dims sizes = group.sizes();
  sizes[0] = static_cast<std::int64_t>(rows.size());
  Tensor selected = Tensor::empty(group.dtype(), sizes);
  const std::int64_t bytes = row_size(group) * group.itemsize();
  char* to = selected.data_as<char>();
  for (std::int64_t row : rows) {
    std::memcpy(to, group.data_as<const char>() + row * bytes, static_cast<std::size_t>(bytes));
    to += bytes;
  }
  return selected;
}

Groups select_rows(const Groups& groups, const Vector<std::int64_t>& rows) {
  Groups selected;
  selected.reserve(groups.size());
  for (const Tensor& group : groups) selected.push_back(select_rows(group, rows));
  return selected;
}

}  // namespace neml2_capi
