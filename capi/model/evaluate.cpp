// The evaluation of a model: the batch in chunks, each through all segments.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "capi/error.h"
#include "capi/model/model.h"

namespace neml2_capi::model {
namespace {

template <class Scalar>
bool all_finite(const Scalar* values, std::int64_t count) {
  return std::all_of(values, values + count, [](Scalar value) { return std::isfinite(value); });
}

// Mark the points of an explicit result that are not finite. Only floating-point values can be.
void mark_non_finite(const Tensor& value, std::vector<std::int32_t>& status) {
  const std::int64_t n = value.sizes().last(value.ndim() - 1).product();
  for (std::size_t p = 0; p < status.size(); ++p) {
    const std::int64_t first = static_cast<std::int64_t>(p) * n;
    const bool finite = value.dtype() == DType::float64   ? all_finite(value.data_as<const double>() + first, n)
                        : value.dtype() == DType::float32 ? all_finite(value.data_as<const float>() + first, n)
                                                          : true;
    if (!finite && status[p] == NEML2_OK) status[p] = NEML2_NON_FINITE;
  }
}

template <class T>
void write(const Points& array, std::int64_t begin, const std::vector<T>& values, std::size_t per_point = 1) {
  if (!array.data) return;
  for (std::size_t p = 0; p < values.size() / per_point; ++p)
    std::memcpy(point(array, begin + static_cast<std::int64_t>(p), sizeof(T)), &values[p * per_point],
                per_point * sizeof(T));
}

// A report array as a variable, so that it is checked like the others.
const Variable& report_variable(std::size_t kind) {
  static const Variable variables[] = {{"the report of the status", "", DType::int32, {}, 0},
                                       {"the report of the iterations", "", DType::int32, {}, 0},
                                       {"the report of the residual norm", "", DType::float64, {}, 0}};
  return variables[kind];
}

// Check that no array reaches beyond memory and that none that is written overlaps another. An output may take the very
// array of an input, which is then copied before the segments run: the answer says which. With another array what one
// chunk writes would be read by a later one.
std::vector<bool> inputs_to_copy(const Model& model, const Evaluation& evaluation, std::int64_t miters) {
  struct Bound {
    const Points& array;
    const Variable& variable;
  };
  std::vector<Bound> inputs, parameters, written;
  Variable history;
  const auto add = [&](std::vector<Bound>& to, const Points& array, const Variable& variable) {
    check_extent(array, variable, evaluation.points);
    if (array.data || &to == &inputs) to.push_back({array, variable});
  };
  for (std::size_t i = 0; i < evaluation.inputs.size(); ++i)
    add(inputs, evaluation.inputs[i], model.variables(Kind::input)[i]);
  for (std::size_t i = 0; i < evaluation.parameters.size(); ++i)
    add(parameters, evaluation.parameters[i], model.variables(Kind::parameter)[i]);
  for (std::size_t i = 0; i < evaluation.outputs.size(); ++i)
    add(written, evaluation.outputs[i], model.variables(Kind::output)[i]);
  const std::size_t num_outputs = written.size();
  for (std::size_t i = 0; i < NEML2_REPORT_RESIDUAL_HISTORY; ++i)
    add(written, evaluation.report[i], report_variable(i));
  if (const Points& array = evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY]; array.data) {
    history = {"the report of the residual history", "", DType::float64, {miters}, 0};
    add(written, array, history);
  }

  std::vector<bool> copy(inputs.size(), false);
  for (std::size_t k = 0; k < written.size(); ++k) {
    const auto& [out, variable] = written[k];
    const auto refuse_overlap = [&](const Bound& other, const char* advice) {
      if (overlap(other.array, other.variable, out, variable, evaluation.points))
        throw Error(NEML2_ERROR_ARGUMENT, variable.name,
                    join("The array of '", variable.name, "' overlaps that of '", other.variable.name, "'. ", advice));
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto& [in, input] = inputs[i];
      if (k < num_outputs && in.data == out.data && in.stride == out.stride &&
          input.point_shape == variable.point_shape)
        copy[i] = true;
      else
        refuse_overlap(inputs[i],
                       "Bind arrays apart, or for an output the very array, with the same stride, of an input.");
    }
    for (const Bound& parameter : parameters) refuse_overlap(parameter, "Bind arrays apart.");
    for (std::size_t i = 0; i < k; ++i) refuse_overlap(written[i], "Bind arrays apart.");
  }
  return copy;
}

}  // namespace

void Model::check_batch(std::int64_t points, const Options& options) const {
  if (baked_batch_ != 0 && points % baked_batch_ != 0)
    throw Error(NEML2_ERROR_SHAPE, limiting_package_,
                join(limiting_package_, " was compiled for a fixed batch of ", baked_batch_, " points; got ", points,
                     ". Evaluate a multiple of ", baked_batch_, ", or compile the model with --dynamic-batch."));
  if (options.whole_batch() && points > greatest_batch_)
    throw Error(NEML2_ERROR_SHAPE, "convergence",
                join("With the option convergence = batch all points run at once, and the packages take at most ",
                     greatest_batch_, "; got ", points, ". Evaluate fewer points, or set convergence = point."));
}

// The length of the chunk that begins here. Where a package takes a parameter as one value for all points of a run, a
// chunk ends where the value changes.
std::int64_t Model::chunk_at(std::int64_t begin, const Evaluation& evaluation, const Options& options) const {
  const std::int64_t most = baked_batch_            ? baked_batch_
                            : options.whole_batch() ? evaluation.points
                                                    : std::min(options.chunk(), greatest_batch_);
  const std::int64_t wanted = std::min(most, evaluation.points - begin);
  std::int64_t length = wanted;
  for (std::size_t index : uniform_parameters_) {
    const Variable& parameter = variables(Kind::parameter)[index];
    length = length_of_equal(evaluation.parameters[index], parameter, begin, length);
    if (length < wanted && (baked_batch_ != 0 || options.whole_batch()))
      throw Error(
          NEML2_ERROR_SHAPE, parameter.name,
          join("A package takes one value of '", parameter.name, "' for all points of a run, so it cannot vary ",
               baked_batch_ != 0 ? "within a fixed batch. Compile the model with --dynamic-batch."
                                 : "within a batch that converges as a whole. Set convergence = point."));
  }
  return length;
}

// Evaluate the points [begin, begin + points), and return their status.
std::vector<std::int32_t> Model::run_chunk(const Evaluation& evaluation, const Options& options, std::int64_t begin,
                                           std::int64_t points, const std::vector<bool>& copy) const {
  const auto& inputs = variables(Kind::input);
  const auto& outputs = variables(Kind::output);
  const auto& parameters = variables(Kind::parameter);
  const auto size = static_cast<std::size_t>(points);
  Chunk chunk;
  chunk.points = points;
  chunk.newton = options.newton();
  chunk.newton.keep_history = evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY].data != nullptr;
  const auto miters = static_cast<std::size_t>(chunk.newton.miters);
  chunk.values.resize(num_values_);
  chunk.status.assign(size, NEML2_OK);
  chunk.iterations.assign(size, 0);
  chunk.residual_norm.assign(size, 0.0);
  chunk.history.assign(chunk.newton.keep_history ? size * miters : 0, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    chunk.values[input_values_[i]] = gather(evaluation.inputs[i], inputs[i], begin, points, copy[i]);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    chunk.parameters.push_back(gather(evaluation.parameters[i], parameters[i], begin, points, false));

  for (const auto& segment : segments_) segment->run(chunk);

  for (std::size_t value : output_values_) mark_non_finite(chunk.values[value], chunk.status);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (evaluation.outputs[i].data)
      scatter(chunk.values[output_values_[i]], outputs[i], evaluation.outputs[i], begin, chunk.status,
              evaluation.mark_failed);
  write(evaluation.report[NEML2_REPORT_STATUS], begin, chunk.status);
  write(evaluation.report[NEML2_REPORT_ITERATIONS], begin, chunk.iterations);
  write(evaluation.report[NEML2_REPORT_RESIDUAL_NORM], begin, chunk.residual_norm);
  write(evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY], begin, chunk.history, miters);
  return std::move(chunk.status);
}

Tally Model::evaluate(const Evaluation& evaluation, const Options& options) const {
  Tally tally;
  if (evaluation.points == 0) return tally;
  check_batch(evaluation.points, options);
  const std::vector<bool> copy = inputs_to_copy(*this, evaluation, options.newton().miters);
  // In fixed batches a parameter may be refused anywhere: before the first point is written.
  if (baked_batch_ != 0 && !uniform_parameters_.empty())
    for (std::int64_t begin = 0; begin < evaluation.points;) begin += chunk_at(begin, evaluation, options);
  for (std::int64_t begin = 0; begin < evaluation.points;) {
    const std::int64_t points = chunk_at(begin, evaluation, options);
    for (std::int32_t status : run_chunk(evaluation, options, begin, points, copy)) tally.add(status, begin++);
  }
  return tally;
}

}  // namespace neml2_capi::model
