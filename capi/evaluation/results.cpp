#include "capi/evaluation/results.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

template <class T>
void write(const Points& array, std::int64_t begin, const Vector<T>& values, std::int64_t per_point = 1) {
  if (!array.data || values.empty()) return;
  if (array.stride == per_point) {
    std::memcpy(point(array, begin, sizeof(T)), values.data(), values.size() * sizeof(T));
    return;
  }
  const std::int64_t points = std::ssize(values) / per_point;
  for (std::int64_t p = 0; p < points; ++p)
    std::memcpy(point(array, begin + p, sizeof(T)), values.data() + p * per_point,
                static_cast<std::size_t>(per_point) * sizeof(T));
}

template <class T>
void write_everywhere(const Points& array, std::int64_t begin, std::int64_t points, T value) {
  if (!array.data) return;
  for (std::int64_t p = 0; p < points; ++p) std::memcpy(point(array, begin + p, sizeof(T)), &value, sizeof(T));
}

}  // namespace

void write_status(const Bindings& bindings, std::int64_t begin, const Vector<std::int32_t>& status) {
  write(bindings.report[NEML2_REPORT_STATUS], begin, status);
}

void clear_rescues(const Bindings& bindings, std::int64_t begin, std::int64_t points) {
  write_everywhere(bindings.report[NEML2_REPORT_RESCUE_SOLVES], begin, points, std::int32_t{0});
}

void write_good_report(const Bindings& bindings, std::int64_t begin, std::int64_t points) {
  write_everywhere(bindings.report[NEML2_REPORT_STATUS], begin, points, std::int32_t{NEML2_OK});
  write_everywhere(bindings.report[NEML2_REPORT_ITERATIONS], begin, points, std::int32_t{0});
  write_everywhere(bindings.report[NEML2_REPORT_RESIDUAL_NORM], begin, points, 0.0);
  write_everywhere(bindings.report[NEML2_REPORT_SUGGESTED_CUT], begin, points, 1.0);
}

void write_results(const Model& model, const Bindings& bindings, const Chunk& chunk) {
  const auto& outputs = model.variables(Kind::output);
  const auto& values = model.values_of(Kind::output);
  const std::int64_t begin = chunk.begin;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (bindings.outputs[i].data)
      scatter(chunk.values[values[i]], outputs[i], bindings.outputs[i], begin, chunk.reports.status,
              bindings.mark_failed);
  write_status(bindings, begin, chunk.reports.status);
  write(bindings.report[NEML2_REPORT_ITERATIONS], begin, chunk.reports.iterations);
  write(bindings.report[NEML2_REPORT_RESIDUAL_NORM], begin, chunk.reports.residual_norm);
  write(bindings.report[NEML2_REPORT_RESIDUAL_HISTORY], begin, chunk.reports.history, chunk.newton.miters);
  write(bindings.report[NEML2_REPORT_SUGGESTED_CUT], begin, chunk.reports.suggested_cut);
}

Tensor& iterates_of_all(const Bindings& bindings, std::size_t unknown, const Variable& variable) {
  Tensor& all = bindings.unknowns->at(unknown);
  if (!all.data()) {
    all = Tensor::empty(variable.dtype, Dims{bindings.points}.then(variable.point_shape));
    fill_nan(all.data_as<char>(), all.dtype(), all.numel());
  }
  return all;
}

void begin_iterates(const Model& model, const Bindings& bindings) {
  const auto& unknowns = model.variables(Kind::unknown);
  for (std::size_t k = 0; bindings.unknowns && k < unknowns.size(); ++k) iterates_of_all(bindings, k, unknowns[k]);
}

void write_unknowns(const Model& model, const Bindings& bindings, const Chunk& chunk) {
  const auto& unknowns = model.variables(Kind::unknown);
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    const Tensor& iterate = chunk.unknowns[model.values_of(Kind::unknown)[i]];
    if (!iterate.data()) continue;
    Groups target = {iterates_of_all(bindings, i, unknowns[i])};
    for (std::int64_t p = 0; p < chunk.points; ++p)
      if (chunk.reports.status[static_cast<std::size_t>(p)] > NEML2_NON_FINITE)
        copy_row({iterate}, p, target, chunk.begin + p);
  }
}

void write_derivatives(const Model& model, const Bindings& bindings, const Chunk& chunk, const Derived& derived) {
  const auto& status = chunk.reports.status;
  for (const Part part : derived_parts)
    for (std::size_t i = 0; i < derived[part].size(); ++i) {
      const Points& array = bindings.of(part)[i];
      if (!array.data) continue;
      Tensor value = derived[part][i];
      if (is_block(part) && bindings.input_first && value.data()) {
        const Derivative& derivative = model.derivatives(kind_of(part)).all()[i];
        value = transposed(value, derivative.rows, derivative.columns);
      }
      if (is_adjoint(part) && is_one_value(array))
        accumulate(value, model.variable(part, i), array, status, bindings.mark_failed);
      else
        scatter(value, model.variable(part, i), array, chunk.begin, status, bindings.mark_failed);
    }
}

void clear_sums(const Model& model, const Bindings& bindings) {
  for (const Part part : {Part::adjoint, Part::parameter_adjoint})
    for (std::size_t i = 0; i < bindings.of(part).size(); ++i) {
      const Points& sum = bindings.of(part)[i];
      const Variable& of = model.variable(part, i);
      if (is_one_value(sum))
        std::memset(sum.data, 0, static_cast<std::size_t>(of.point_shape.product() * itemsize(of.dtype)));
    }
}

}  // namespace neml2_capi::model
