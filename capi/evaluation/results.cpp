// What an evaluation gives: outputs, derivatives and reports of a chunk, written to the arrays of the caller.
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "capi/base/error.h"
#include "capi/model/model.h"
#include "capi/segments/graph_call.h"
#include "capi/tensor/rows.h"
#include "capi/values/finite.h"

namespace neml2_capi::model {
namespace {

// Mark the points of an explicit result that are not finite. Only floating-point values can be.
void mark_non_finite(const Tensor& value, Vector<std::int32_t>& status) {
  if (!value.data() || (value.dtype() != DType::float64 && value.dtype() != DType::float32)) return;
  with_scalar(value.dtype(), [&](auto* type) {
    using Scalar = std::remove_pointer_t<decltype(type)>;
    const Scalar* values = value.data_as<const Scalar>();
    if (FiniteScan<Scalar>::run(values, value.numel())) return;
    const std::int64_t n = value.sizes().last(value.ndim() - 1).product();
    for (std::size_t p = 0; p < status.size(); ++p)
      if (status[p] == NEML2_OK && !FiniteScan<Scalar>::run(values + static_cast<std::int64_t>(p) * n, n))
        status[p] = NEML2_NON_FINITE;
  });
}

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

void Model::run_graph(const GraphCall& graph, Handles& given, const Evaluation& evaluation, std::int64_t begin,
                      std::int64_t points, Tally& tally) const {
  const auto& outputs = variables(Kind::output);
  Handles results(graph.package().num_outputs());
  graph.package().run(points, given, results);

  bool finite = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Tensor& result = *results[graph_outputs_[i]];
    result.make_row_major();
    if (!write_finite(result, outputs[i], evaluation.outputs[i], begin, points)) finite = false;
  }
  if (&graph == jacobian_graph_) write_graph_blocks(results, evaluation, begin, points);
  if (finite) {  // no list of what became of each point
    write_everywhere(evaluation.report[NEML2_REPORT_STATUS], begin, points, std::int32_t{NEML2_OK});
    tally.add(NEML2_OK, begin, points);
  } else {
    Vector<std::int32_t> status(static_cast<std::size_t>(points), NEML2_OK);
    for (std::size_t i : graph_outputs_) mark_non_finite(*results[i], status);
    write(evaluation.report[NEML2_REPORT_STATUS], begin, status);
    tally.add(status, begin);
  }
  write_everywhere(evaluation.report[NEML2_REPORT_ITERATIONS], begin, points, std::int32_t{0});
  write_everywhere(evaluation.report[NEML2_REPORT_RESIDUAL_NORM], begin, points, 0.0);
  write_everywhere(evaluation.report[NEML2_REPORT_SUGGESTED_CUT], begin, points, 1.0);
}

// They are those of all points: no solve failed.
void Model::write_graph_blocks(Handles& results, const Evaluation& evaluation, std::int64_t begin,
                               std::int64_t points) const {
  for (std::size_t i = 0; i < graph_blocks_.size(); ++i) {
    const Points& array = evaluation.blocks[i];
    if (!array.data) continue;
    const auto& [result, pair] = graph_blocks_[i];
    const Derivative& derivative = by_inputs_.all()[i];
    const std::int64_t rows = derivative.rows, columns = derivative.columns;
    if (pair->batched && has_columns(*results[result], rows, columns)) {
      write_columns(*results[result], evaluation.input_first, array, begin);
      continue;
    }
    const Tensor block = pair->rows(std::move(*results[result]));
    if (!evaluation.input_first)
      write_rows(block, derivative.block, array, begin, points);
    else if (pair->batched)
      write_transposed(block, rows, columns, array, begin);
    else
      write_rows(transposed(block, rows, columns), derivative.block, array, begin, points);
  }
}

void Model::write_results(const Evaluation& evaluation, std::int64_t begin, Chunk& chunk) const {
  const auto& outputs = variables(Kind::output);
  for (std::size_t value : output_values_) mark_non_finite(chunk.values[value], chunk.status);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (evaluation.outputs[i].data)
      scatter(chunk.values[output_values_[i]], outputs[i], evaluation.outputs[i], begin, chunk.status,
              evaluation.mark_failed);
  write(evaluation.report[NEML2_REPORT_STATUS], begin, chunk.status);
  write(evaluation.report[NEML2_REPORT_ITERATIONS], begin, chunk.iterations);
  write(evaluation.report[NEML2_REPORT_RESIDUAL_NORM], begin, chunk.residual_norm);
  write(evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY], begin, chunk.history, chunk.newton.miters);
  write(evaluation.report[NEML2_REPORT_SUGGESTED_CUT], begin, chunk.suggested_cut);
}

// The last iterates of failed points; NaN elsewhere.
void Model::write_unknowns(const Evaluation& evaluation, std::int64_t begin, const Chunk& chunk) const {
  const auto& unknowns = variables(Kind::unknown);
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    const Tensor& iterate = chunk.unknowns[unknown_values_[i]];
    if (!iterate.data()) continue;
    Tensor& all = evaluation.unknowns->at(i);
    if (!all.data()) {
      all = Tensor::empty(unknowns[i].dtype, Dims{evaluation.points}.then(unknowns[i].point_shape));
      fill_nan(all.data_as<char>(), all.dtype(), all.numel());
    }
    Groups target = {all};
    for (std::int64_t p = 0; p < chunk.points; ++p)
      if (chunk.status[static_cast<std::size_t>(p)] > NEML2_NON_FINITE) copy_row({iterate}, p, target, begin + p);
  }
}

Model::Found Model::find_derivatives(const Evaluation& evaluation, std::int64_t begin, const Chunk& chunk,
                                     const Vector<Vector<Block>>& blocks) const {
  const Derivatives::Chain chain{segments_, blocks, chunk.points, num_values_, parameters_.size(), dtype_};
  const auto gathered = [&](const std::vector<Points>& arrays, Kind kind) {
    return gather_bound(arrays, variables(kind), begin, chunk.points);
  };
  Found found;
  if (any_bound(evaluation.jvps)) found.jvps = by_inputs_.jvp(chain, gathered(evaluation.tangents, Kind::input));
  if (any_bound(evaluation.adjoints))
    found.adjoints = by_inputs_.vjp(chain, gathered(evaluation.cotangents, Kind::output));
  if (any_bound(evaluation.parameter_adjoints))
    found.parameter_adjoints = by_parameters_.vjp(chain, gathered(evaluation.cotangents, Kind::output));
  if (any_bound(evaluation.blocks)) found.blocks = by_inputs_.blocks(chain);
  if (any_bound(evaluation.parameter_blocks)) found.parameter_blocks = by_parameters_.blocks(chain);
  return found;
}

void Model::write_derivatives(const Evaluation& evaluation, std::int64_t begin, const Vector<std::int32_t>& status,
                              const Found& found) const {
  const auto write = [&](const Tensor& value, const Variable& variable, const Points& array) {
    if (array.data) scatter(value, variable, array, begin, status, evaluation.mark_failed);
  };
  for (std::size_t i = 0; i < found.jvps.size(); ++i)
    write(found.jvps[i], variables(Kind::output)[i], evaluation.jvps[i]);

  const auto write_adjoints = [&](const Vector<Tensor>& adjoints, Kind kind, const std::vector<Points>& arrays) {
    for (std::size_t i = 0; i < adjoints.size(); ++i)
      if (arrays[i].data && arrays[i].stride == 0)
        accumulate(adjoints[i], variables(kind)[i], arrays[i], status, evaluation.mark_failed);
      else
        write(adjoints[i], variables(kind)[i], arrays[i]);
  };
  write_adjoints(found.adjoints, Kind::input, evaluation.adjoints);
  write_adjoints(found.parameter_adjoints, Kind::parameter, evaluation.parameter_adjoints);

  const auto write_blocks = [&](const Vector<Tensor>& blocks, const Derivatives& of,
                                const std::vector<Points>& arrays) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Derivative& derivative = of.all()[i];
      const bool turned = evaluation.input_first && blocks[i].data();
      write(turned ? transposed(blocks[i], derivative.rows, derivative.columns) : blocks[i], derivative.block,
            arrays[i]);
    }
  };
  write_blocks(found.blocks, by_inputs_, evaluation.blocks);
  write_blocks(found.parameter_blocks, by_parameters_, evaluation.parameter_blocks);
}

// Sums over all points begin at zero.
void Model::clear_sums(const Evaluation& evaluation) const {
  const auto clear = [](const std::vector<Points>& sums, const std::vector<Variable>& of) {
    for (std::size_t i = 0; i < of.size(); ++i)
      if (sums[i].data && sums[i].stride == 0)
        std::memset(sums[i].data, 0, static_cast<std::size_t>(of[i].point_shape.product() * itemsize(of[i].dtype)));
  };
  clear(evaluation.adjoints, variables(Kind::input));
  clear(evaluation.parameter_adjoints, variables(Kind::parameter));
}

}  // namespace neml2_capi::model
