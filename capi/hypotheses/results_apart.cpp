#include "capi/hypotheses/results_apart.h"

#include <cstring>

#include "capi/evaluation/gathered.h"

namespace neml2_capi::model {

ResultsApart::ResultsApart(const Model& model, const Bindings& bindings, const Range& range)
    : rows_(range.begin, range.points) {
  for_each_result(model, bindings, [&](const Points& all, const Variable& variable, Part part, std::size_t i) {
    const std::int64_t size = itemsize(variable.dtype);
    results_.push_back({part, i, all, rows_.add(variable, false), variable.point_shape.product() * size, size});
  });
}

void ResultsApart::replace(Bindings& bindings) const {
  for (const Result& result : results_) bindings.of(result.part)[result.index] = result.row;
}

void ResultsApart::write(std::int64_t p) const {
  for (const Result& result : results_)
    std::memcpy(point(result.all, p, result.itemsize), point(result.row, p, result.itemsize),
                static_cast<std::size_t>(result.bytes));
}

}  // namespace neml2_capi::model
