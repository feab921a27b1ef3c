// The evaluation of a model over tensors of a device: all points at once, through all segments, by the operators of
// libtorch and the packages alone.
#include "capi/model/device_evaluation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "capi/aoti/libtorch/algebra.h"
#include "capi/error.h"
#include "capi/model/implicit.h"
#include "capi/model/model.h"

namespace neml2_capi::model {
namespace {

namespace libtorch = aoti::libtorch;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool is_floating(const Tensor& tensor) { return tensor.dtype() == DType::float64 || tensor.dtype() == DType::float32; }

// A value of every point, one row each.
Tensor rows_of(const Tensor& given, const Dims& batch, const Dims& point_shape) {
  return libtorch::shaped(libtorch::expanded(given, batch.then(point_shape)), Dims{batch.product()}.then(point_shape));
}

// (points, size) of those that are there.
Vector<Tensor> vectors_of(const Vector<Tensor>& given, const Dims& batch, const std::vector<Variable>& variables) {
  Vector<Tensor> vectors(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Dims& shape = variables[i].point_shape;
    if (given[i].data())
      vectors[i] = libtorch::shaped(rows_of(given[i], batch, shape), {batch.product(), shape.product()});
  }
  return vectors;
}

// The sum over the batch axes along which something is one value for many points.
Tensor sum_to(const Tensor& value, const Dims& batch, const Dims& own) {
  const std::int64_t leading = batch.size() - own.size();
  Dims axes;
  for (std::int64_t i = 0; i < batch.size(); ++i)
    if (i < leading || own[i - leading] != batch[i]) axes.push_back(i);
  const Tensor total = axes.empty() ? value : libtorch::sum(value, axes, true);
  return libtorch::shaped(total, own.then(value.sizes().last(value.ndim() - batch.size())));
}

}  // namespace

void Model::require_device() const {
  for (const auto& segment : segments_)
    if (const auto* implicit = dynamic_cast<const ImplicitSegment*>(segment.get())) implicit->require_device(device_);
  if (baked_batch_ != 0)
    throw Error(NEML2_ERROR_UNSUPPORTED, limiting_package_,
                join(limiting_package_, " was compiled for a fixed batch of ", baked_batch_,
                     " points, and on the device ", device_.str(),
                     " (runtime \"tensors\") all points run at once: compile the model with "
                     "--dynamic-batch."));
}

DeviceResults Model::evaluate(const DeviceRequest& request, const Options& options) const {
  const std::int64_t points = request.batch.product();
  if (options.whole_batch())
    throw Error(NEML2_ERROR_UNSUPPORTED, "convergence",
                join("The option convergence = batch is not there on the device ", device_.str(),
                     " (runtime \"tensors\"): set convergence = point."));
  if (points > greatest_batch_)
    throw Error(NEML2_ERROR_SHAPE, "batch",
                join("On the device ", device_.str(), " all points run at once, and the packages take at most ",
                     greatest_batch_, "; got ", points, ". Evaluate fewer points at a time."));
  for (const std::size_t index : uniform_parameters_) {
    const Variable& parameter = variables(Kind::parameter)[index];
    if (request.parameters[index].numel() == parameter.point_shape.product()) continue;
    throw Error(NEML2_ERROR_SHAPE, parameter.name,
                join("A package takes one value of '", parameter.name, "' for all points of a run, so on the device ",
                     device_.str(),
                     " it cannot vary: give one value, and evaluate points of other values by "
                     "themselves."));
  }

  const Derivatives& derivatives = request.by_parameters ? by_parameters_ : by_inputs_;
  const auto& by = variables(request.by_parameters ? Kind::parameter : Kind::input);
  Chunk chunk;
  chunk.points = points;
  chunk.device = device_;
  chunk.newton = options.newton();
  chunk.newton.keep_history = options.collect_history();
  chunk.keep_unknowns = true;
  chunk.by_parameters = request.by_parameters && (request.vjp || request.blocks);
  // What a parameter does to one segment goes on through the values of the next.
  const bool differentiates = request.jvp || request.vjp || request.blocks;
  chunk.by_values = differentiates && (!request.by_parameters || segments_.size() > 1);
  chunk.values.resize(num_values_);
  chunk.unknowns.resize(num_values_);
  chunk.on_device = DeviceOutcome::none(points, device_);
  const auto& inputs = variables(Kind::input);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    chunk.values[input_values_[i]] = rows_of(request.inputs[i], request.batch, inputs[i].point_shape);
  for (std::size_t i = 0; i < request.parameters.size(); ++i)
    chunk.parameters.push_back(
        rows_of(request.parameters[i], request.batch, variables(Kind::parameter)[i].point_shape));

  DeviceResults results;
  if (points > 0) {
    Vector<Vector<Block>> blocks;
    for (const auto& segment : segments_) blocks.push_back(segment->run(chunk));
    const Derivatives::Chain chain{segments_, blocks, points, num_values_, parameters_.size(), dtype_, device_};
    if (request.jvp) results.jvps = derivatives.jvp(chain, vectors_of(request.tangents, request.batch, inputs));
    if (request.vjp)
      results.adjoints = derivatives.vjp(chain, vectors_of(request.cotangents, request.batch, variables(Kind::output)));
    if (request.blocks) results.blocks = derivatives.blocks(chain);
    for (const std::size_t value : output_values_) results.outputs.push_back(chunk.values[value]);
  }
  mark_results(request, chunk, results);
  if (!request.vjp) return results;
  for (std::size_t i = 0; i < by.size(); ++i)
    if (derivatives.by_input(i))
      results.adjoints[i] = sum_to(results.adjoints[i], request.batch, request.adjoint_batches[i]);
  return results;
}

// Give results the shapes that the caller sees, and memory of their own; those of points that failed become NaN.
void Model::mark_results(const DeviceRequest& request, const Chunk& chunk, DeviceResults& results) const {
  const Dims& batch = request.batch;
  const DeviceOutcome& outcome = chunk.on_device;
  results.any_failed = outcome.any_failed;
  const Tensor failed = outcome.any_failed ? outcome.failed() : Tensor();
  const auto zeros = [&](const Dims& sizes, DType dtype) { return libtorch::filled(dtype, sizes, 0.0, device_); };
  // `rows` has one row per point, or one for all; nothing there is zero.
  const auto present = [&](Tensor rows, const Variable& variable, bool batched) {
    const Dims wanted = (batched ? batch : Dims()).then(variable.point_shape);
    if (!rows.data()) return zeros(wanted, variable.dtype);
    const Dims flat{batched ? chunk.points : 1};
    rows = libtorch::shaped(rows, Dims{rows.sizes()[0]}.then(variable.point_shape));
    if (!(rows.sizes().first(1) == flat)) rows = libtorch::expanded(rows, flat.then(variable.point_shape)).row_major();
    if (failed.data() && batched && is_floating(rows)) rows = select(rows, failed, false);
    return libtorch::shaped(rows, wanted);
  };

  Tensor status = outcome.status;
  const auto& outputs = variables(Kind::output);
  results.outputs.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Tensor& output = results.outputs[i];
    const bool is_given =
        std::any_of(chunk.values.begin(), chunk.values.end(),
                    [&](const Tensor& value) {
                      return &value - chunk.values.data() != static_cast<std::ptrdiff_t>(output_values_[i]) &&
                             output.data() && value.storage().data() == output.storage().data();
                    }) ||
        std::any_of(chunk.parameters.begin(), chunk.parameters.end(),
                    [&](const Tensor& parameter) {
                      return output.data() && parameter.storage().data() == output.storage().data();
                    }) ||
        std::find(input_values_.begin(), input_values_.end(), output_values_[i]) != input_values_.end();
    output = present(std::move(output), outputs[i], true);
    if (is_given) output = output.copy();
    if (!is_floating(output) || chunk.points == 0) continue;
    const std::int64_t size = outputs[i].point_shape.product();
    const Tensor bad = libtorch::negated(libtorch::finite(libtorch::shaped(output, {chunk.points, size})));
    const Tensor here = libtorch::less(zeros({chunk.points}, DType::float64),
                                       libtorch::sum(libtorch::converted(bad, DType::float64), {1}, false));
    status = libtorch::choose(libtorch::both(here, libtorch::equal(status, NEML2_OK)), NEML2_NON_FINITE, status);
  }

  const Derivatives& derivatives = request.by_parameters ? by_parameters_ : by_inputs_;
  const auto& by = variables(request.by_parameters ? Kind::parameter : Kind::input);
  if (request.jvp) results.jvps.resize(outputs.size());
  for (std::size_t i = 0; i < results.jvps.size(); ++i)
    if (derivatives.of_output(i)) results.jvps[i] = present(std::move(results.jvps[i]), outputs[i], true);
  if (request.vjp) results.adjoints.resize(by.size());
  for (std::size_t i = 0; i < results.adjoints.size(); ++i)
    if (derivatives.by_input(i)) results.adjoints[i] = present(std::move(results.adjoints[i]), by[i], true);
  if (request.blocks) results.blocks.resize(derivatives.all().size());
  for (std::size_t i = 0; i < results.blocks.size(); ++i) {
    const Derivative& derivative = derivatives.all()[i];
    const bool batched = derivative.batched || request.blocks_vary || chunk.points == 0;
    results.blocks[i] = present(std::move(results.blocks[i]), derivative.block, batched);
  }

  const auto report = [&](int kind, const Tensor& values) { results.report[kind] = libtorch::shaped(values, batch); };
  report(NEML2_REPORT_STATUS, status);
  report(NEML2_REPORT_ITERATIONS, outcome.iterations);
  report(NEML2_REPORT_RESIDUAL_NORM, outcome.residual_norm);
  report(NEML2_REPORT_SUGGESTED_CUT, outcome.suggested_cut);
  if (const std::int64_t miters = chunk.newton.miters; chunk.newton.keep_history)
    results.report[NEML2_REPORT_RESIDUAL_HISTORY] =
        outcome.history.data() ? libtorch::shaped(outcome.history, batch.then({miters}))
                               : libtorch::filled(DType::float64, batch.then({miters}), nan, device_);
  results.unknowns.resize(unknown_values_.size());
  for (std::size_t i = 0; outcome.any_failed && i < unknown_values_.size(); ++i) {
    const Dims sizes = batch.then(variables(Kind::unknown)[i].point_shape);
    const Tensor& last = chunk.unknowns[unknown_values_[i]];
    results.unknowns[i] = last.data() ? libtorch::shaped(last, sizes)
                                      : libtorch::filled(variables(Kind::unknown)[i].dtype, sizes, nan, device_);
  }
}

}  // namespace neml2_capi::model
