#include "capi/devices/evaluate.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "capi/base/error.h"
#include "capi/devices/marks.h"
#include "capi/graph/algebra.h"
#include "capi/segments/implicit.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Returns a value of every point, one row each.
Tensor rows_of(const Tensor& given, const Dims& batch, const Dims& point_shape) {
  return shaped(expanded(given, batch.then(point_shape)), Dims{batch.product()}.then(point_shape));
}

// Returns (points, size) of those that are there.
Vector<Tensor> vectors_of(const Vector<Tensor>& given, const Dims& batch, const std::vector<Variable>& variables) {
  Vector<Tensor> vectors(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Dims& shape = variables[i].point_shape;
    if (given[i].data()) vectors[i] = shaped(rows_of(given[i], batch, shape), {batch.product(), shape.product()});
  }
  return vectors;
}

// Returns the sum over the batch axes along which something is one value for many points.
Tensor sum_to(const Tensor& value, const Dims& batch, const Dims& own) {
  const std::int64_t leading = batch.size() - own.size();
  Dims axes;
  for (std::int64_t i = 0; i < batch.size(); ++i)
    if (i < leading || own[i - leading] != batch[i]) axes.push_back(i);
  const Tensor total = axes.empty() ? value : algebra::sum(value, axes, true);
  return shaped(total, own.then(value.sizes().last(value.ndim() - batch.size())));
}

// Shapes that the caller sees, and memory of their own; what is of points that failed becomes NaN.
struct Shaping {
  const Dims& batch;
  const std::int64_t points;
  const Tensor failed;  // empty if none did
  const Device device;

  Tensor zeros(const Dims& sizes, DType dtype) const { return algebra::filled(dtype, sizes, 0.0, device); }

  // `rows` has one row per point, or one for all; nothing there is zero.
  Tensor of(Tensor rows, const Variable& variable, bool batched) const {
    const Dims wanted = (batched ? batch : Dims()).then(variable.point_shape);
    if (!rows.data()) return zeros(wanted, variable.dtype);
    const Dims flat{batched ? points : 1};
    rows = shaped(rows, Dims{rows.sizes()[0]}.then(variable.point_shape));
    if (!(rows.sizes().first(1) == flat)) rows = expanded(rows, flat.then(variable.point_shape)).row_major();
    if (failed.data() && batched && is_real(rows.dtype())) rows = select(rows, failed, false);
    return shaped(rows, wanted);
  }

  Tensor shaped_or_nan(const Tensor& rows, const Dims& point_shape, DType dtype) const {
    const Dims sizes = batch.then(point_shape);
    return rows.data() ? shaped(rows, sizes) : algebra::filled(dtype, sizes, nan, device);
  }
};

// Solves as ImplicitSegment::run() does, and adds the outcome to `all`.
Vector<Block> solve(const ImplicitSegment& segment, Chunk& chunk, DeviceOutcome& all) {
  Operands at = segment.prepare(chunk);
  const DeviceOutcome outcome = solve_on_device(*segment.system(at, false), at.unknowns, chunk.newton);
  Vector<Block> blocks = segment.differentiate(at, chunk);
  all.add(outcome);
  if (outcome.any_failed) {
    const Tensor failed = outcome.failed();
    segment.unpack(select(at.unknowns, failed, true), chunk);
    for (std::size_t value : segment.outputs()) chunk.unknowns[value] = chunk.values[value];
    at.unknowns = select(at.unknowns, failed, false);
  }
  segment.unpack(at.unknowns, chunk);
  return blocks;
}

// Returns false if a value shares its memory with an input, a parameter or another value.
bool owns_memory(const Model& model, const Chunk& chunk, std::size_t value) {
  const Tensor& own = chunk.values[value];
  const auto& inputs = model.values_of(Kind::input);
  if (std::find(inputs.begin(), inputs.end(), value) != inputs.end()) return false;
  const auto shares = [&](const Tensor& other) {
    return &other != &own && own.data() && other.storage().data() == own.storage().data();
  };
  return std::none_of(chunk.values.begin(), chunk.values.end(), shares) &&
         std::none_of(chunk.parameters.begin(), chunk.parameters.end(), shares);
}

// Makes the outputs' memory their own, and of the shape that the caller sees.
void shape_outputs(const Model& model, const Shaping& shaping, const Chunk& chunk, Vector<Tensor>& outputs) {
  outputs.resize(model.variables(Kind::output).size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool is_owned = owns_memory(model, chunk, model.values_of(Kind::output)[i]);
    outputs[i] = shaping.of(std::move(outputs[i]), model.variables(Kind::output)[i], true);
    if (!is_owned) outputs[i] = outputs[i].copy();
  }
}

void shape_derivatives(const Model& model, const Shaping& shaping, const DeviceRequest& request,
                       DeviceResults& results) {
  for (const Part part : derived_parts) {
    if (!request.wants[part]) continue;
    const Derivatives& derivatives = model.derivatives(kind_of(part));
    Vector<Tensor>& all = results.of[part];
    all.resize(model.count(part));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!model.is_compiled(part, i)) continue;
      const bool batched =
          !is_block(part) || derivatives.all()[i].batched || request.blocks_vary || shaping.points == 0;
      all[i] = shaping.of(std::move(all[i]), model.variable(part, i), batched);
    }
  }
}

void finish(const Model& model, const DeviceRequest& request, const Chunk& chunk, DeviceOutcome& outcome,
            DeviceResults& results) {
  const Shaping shaping{request.batch, chunk.points, outcome.any_failed ? outcome.failed() : Tensor(), chunk.device};
  results.any_failed = outcome.any_failed;
  shape_outputs(model, shaping, chunk, results.of[Part::output]);
  shape_derivatives(model, shaping, request, results);
  mark(model, request, results, outcome);

  const auto report = [&](std::size_t kind, const Tensor& values) {
    results.report[kind] = shaped(values, request.batch);
  };
  report(NEML2_REPORT_STATUS, outcome.status);
  report(NEML2_REPORT_ITERATIONS, outcome.iterations);
  report(NEML2_REPORT_RESIDUAL_NORM, outcome.residual_norm);
  report(NEML2_REPORT_SUGGESTED_CUT, outcome.suggested_cut);
  if (chunk.newton.keep_history)
    results.report[NEML2_REPORT_RESIDUAL_HISTORY] =
        shaping.shaped_or_nan(outcome.history, {chunk.newton.miters}, DType::float64);
  const auto& unknowns = model.variables(Kind::unknown);
  results.unknowns.resize(unknowns.size());
  for (std::size_t i = 0; outcome.any_failed && i < unknowns.size(); ++i) {
    const Tensor& iterate = chunk.unknowns[model.values_of(Kind::unknown)[i]];
    results.unknowns[i] = shaping.shaped_or_nan(iterate, unknowns[i].point_shape, unknowns[i].dtype);
  }
}

}  // namespace

void check_on_device(const Model& model, const Options& options, std::int64_t points) {
  if (options.whole_batch())
    throw Error(NEML2_ERROR_UNSUPPORTED, "convergence",
                join("The option convergence = batch is not there on the device ", model.compute_device().str(),
                     " (runtime \"tensors\"): set convergence = point."));
  if (options.rescue() > 0)
    throw Error(NEML2_ERROR_UNSUPPORTED, "rescue",
                join("The option rescue is not there on the device ", model.compute_device().str(),
                     " (runtime \"tensors\"): set rescue = 0."));
  if (points > model.greatest_batch())
    throw Error(
        NEML2_ERROR_SHAPE, "batch",
        join("On the device ", model.compute_device().str(), " all points run at once, and the packages take at most ",
             model.greatest_batch(), "; got ", points, ". Evaluate fewer points at a time."));
}

DeviceResults evaluate_on_device(const Model& model, const DeviceRequest& request, const Options& options) {
  const Device device = model.compute_device();
  const std::int64_t points = request.batch.product();
  check_on_device(model, options, points);
  for (const std::size_t index : model.uniform_parameters()) {
    const Variable& parameter = model.variables(Kind::parameter)[index];
    if (request.given[Part::parameter][index].numel() == parameter.point_shape.product()) continue;
    throw Error(NEML2_ERROR_SHAPE, parameter.name,
                join("A package takes one value of '", parameter.name, "' for all points of a run, so on the device ",
                     device.str(),
                     " it cannot vary: give one value, and evaluate points of other values by "
                     "themselves."));
  }

  Chunk chunk;
  chunk.points = points;
  chunk.device = device;
  chunk.newton = options.newton();
  chunk.newton.keep_history = options.collect_history();
  chunk.keep_unknowns = true;
  chunk.by_parameters = request.by_parameters();
  chunk.by_values = request.by_inputs() || (request.by_parameters() && model.carries_parameters());
  chunk.values.resize(model.num_values());
  chunk.unknowns.resize(model.num_values());
  DeviceOutcome outcome = DeviceOutcome::none(points, device);
  const auto& inputs = model.variables(Kind::input);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    chunk.values[model.values_of(Kind::input)[i]] =
        rows_of(request.given[Part::input][i], request.batch, inputs[i].point_shape);
  const auto& parameters = request.given[Part::parameter];
  for (std::size_t i = 0; i < parameters.size(); ++i)
    chunk.parameters.push_back(rows_of(parameters[i], request.batch, model.variable(Part::parameter, i).point_shape));

  DeviceResults results;
  if (points > 0) {
    Vector<Vector<Block>> blocks;
    for (const auto& segment : model.segments()) {
      const auto* implicit = dynamic_cast<const ImplicitSegment*>(segment.get());
      blocks.push_back(implicit ? solve(*implicit, chunk, outcome) : segment->run(chunk));
    }
    const Derivatives::Chain chain{model.segments(),        blocks,        points, model.num_values(),
                                   chunk.parameters.size(), model.dtype(), device};
    const auto vectors = [&](Part part) {
      return vectors_of(request.given[part], request.batch, model.variables(kind_of(part)));
    };
    for (const Part part : derived_parts)
      if (request.wants[part]) results.of[part] = model.derive(part, chain, vectors);
    for (const std::size_t value : model.values_of(Kind::output))
      results.of[Part::output].push_back(chunk.values[value]);
  }
  finish(model, request, chunk, outcome, results);
  for (const Part part : {Part::adjoint, Part::parameter_adjoint})
    for (std::size_t i = 0; i < results.of[part].size(); ++i)
      if (Tensor& adjoint = results.of[part][i]; model.is_compiled(part, i))
        adjoint = sum_to(adjoint, request.batch, request.adjoint_batches[part][i]);
  return results;
}

}  // namespace neml2_capi::model
