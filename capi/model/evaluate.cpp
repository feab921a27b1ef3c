// The evaluation of a model: the batch in chunks, each through all segments.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "capi/error.h"
#include "capi/model/arrays.h"
#include "capi/model/model.h"
#include "capi/newton/rows.h"

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

// Does any of these arrays ask for a result?
bool bound(const std::vector<Points>& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](const Points& array) { return array.data != nullptr; });
}

// The bound arrays of some points; what is not bound is empty.
std::vector<Tensor> gather_bound(const std::vector<Points>& arrays, const std::vector<Variable>& variables,
                                 std::int64_t begin, std::int64_t points) {
  std::vector<Tensor> tensors(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i].data) continue;
    const Tensor rows = gather(arrays[i], variables[i], begin, points, false);
    const Dims sizes = {points, variables[i].point_shape.product()};
    tensors[i] = Tensor(rows.storage(), rows.dtype(), sizes, sizes.row_major(), rows.offset());
  }
  return tensors;
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

Evaluation::Evaluation(const Model& model) {
  const auto room = [](std::vector<Points>& arrays, std::size_t size) { arrays.resize(size); };
  const std::size_t inputs = model.variables(Kind::input).size(), outputs = model.variables(Kind::output).size();
  for (auto* arrays : {&this->inputs, &tangents, &adjoints}) room(*arrays, inputs);
  for (auto* arrays : {&this->outputs, &jvps, &cotangents}) room(*arrays, outputs);
  for (auto* arrays : {&parameters, &parameter_adjoints}) room(*arrays, model.variables(Kind::parameter).size());
  room(blocks, model.derivatives(Kind::input).all().size());
  room(parameter_blocks, model.derivatives(Kind::parameter).all().size());
}

Chunk Model::make_chunk(const Evaluation& evaluation, const Options& options, std::int64_t begin, std::int64_t points,
                        const std::vector<bool>& copy) const {
  const auto& inputs = variables(Kind::input);
  const auto& parameters = variables(Kind::parameter);
  const auto size = static_cast<std::size_t>(points);
  Chunk chunk;
  chunk.points = points;
  chunk.newton = options.newton();
  chunk.newton.keep_history = evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY].data != nullptr;
  chunk.substep_del_tol = options.number("substep_del_tol");
  chunk.keep_unknowns = evaluation.unknowns != nullptr;
  chunk.by_values = bound(evaluation.blocks) || bound(evaluation.jvps) || bound(evaluation.adjoints);
  chunk.by_parameters = bound(evaluation.parameter_blocks) || bound(evaluation.parameter_adjoints);
  // What a parameter does to one segment goes on through the values of the next.
  chunk.by_values = chunk.by_values || (chunk.by_parameters && segments_.size() > 1);
  chunk.values.resize(num_values_);
  chunk.unknowns.resize(num_values_);
  chunk.status.assign(size, NEML2_OK);
  chunk.iterations.assign(size, 0);
  chunk.residual_norm.assign(size, 0.0);
  chunk.suggested_cut.assign(size, 1.0);
  if (chunk.newton.keep_history)
    chunk.history.assign(size * static_cast<std::size_t>(chunk.newton.miters),
                         std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    chunk.values[input_values_[i]] = gather(evaluation.inputs[i], inputs[i], begin, points, copy[i]);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    chunk.parameters.push_back(gather(evaluation.parameters[i], parameters[i], begin, points, false));
  return chunk;
}

// Evaluate the points [begin, begin + points), and return their status.
std::vector<std::int32_t> Model::run_chunk(const Evaluation& evaluation, const Options& options, std::int64_t begin,
                                           std::int64_t points, const std::vector<bool>& copy) const {
  Chunk chunk = make_chunk(evaluation, options, begin, points, copy);
  std::vector<std::vector<Block>> blocks;
  for (const auto& segment : segments_) blocks.push_back(segment->run(chunk));
  const Found found = find_derivatives(evaluation, begin, chunk, blocks);  // which may be refused
  if (begin == 0) clear_sums(evaluation);
  write_results(evaluation, begin, chunk);
  write_derivatives(evaluation, begin, chunk, found);
  return std::move(chunk.status);
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
  write(evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY], begin, chunk.history,
        static_cast<std::size_t>(chunk.newton.miters));
  write(evaluation.report[NEML2_REPORT_SUGGESTED_CUT], begin, chunk.suggested_cut);
  if (evaluation.unknowns) write_unknowns(evaluation, begin, chunk);
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
    newton::Groups target = {all};
    for (std::int64_t p = 0; p < chunk.points; ++p)
      if (chunk.status[static_cast<std::size_t>(p)] > NEML2_NON_FINITE)
        newton::copy_row({iterate}, p, target, begin + p);
  }
}

Model::Found Model::find_derivatives(const Evaluation& evaluation, std::int64_t begin, const Chunk& chunk,
                                     const std::vector<std::vector<Block>>& blocks) const {
  const Derivatives::Chain chain{segments_, blocks, chunk.points, num_values_, parameters_.size(), dtype_};
  const auto gathered = [&](const std::vector<Points>& arrays, Kind kind) {
    return gather_bound(arrays, variables(kind), begin, chunk.points);
  };
  Found found;
  if (bound(evaluation.jvps)) found.jvps = by_inputs_.jvp(chain, gathered(evaluation.tangents, Kind::input));
  if (bound(evaluation.adjoints)) found.adjoints = by_inputs_.vjp(chain, gathered(evaluation.cotangents, Kind::output));
  if (bound(evaluation.parameter_adjoints))
    found.parameter_adjoints = by_parameters_.vjp(chain, gathered(evaluation.cotangents, Kind::output));
  if (bound(evaluation.blocks)) found.blocks = by_inputs_.blocks(chain);
  if (bound(evaluation.parameter_blocks)) found.parameter_blocks = by_parameters_.blocks(chain);
  return found;
}

void Model::write_derivatives(const Evaluation& evaluation, std::int64_t begin, const Chunk& chunk,
                              const Found& found) const {
  const auto write = [&](const Tensor& value, const Variable& variable, const Points& array) {
    if (array.data) scatter(value, variable, array, begin, chunk.status, evaluation.mark_failed);
  };
  for (std::size_t i = 0; i < found.jvps.size(); ++i)
    write(found.jvps[i], variables(Kind::output)[i], evaluation.jvps[i]);

  const auto write_adjoints = [&](const std::vector<Tensor>& adjoints, Kind kind, const std::vector<Points>& arrays) {
    for (std::size_t i = 0; i < adjoints.size(); ++i)
      if (arrays[i].data && arrays[i].stride == 0)
        accumulate(adjoints[i], variables(kind)[i], arrays[i], chunk.status, evaluation.mark_failed);
      else
        write(adjoints[i], variables(kind)[i], arrays[i]);
  };
  write_adjoints(found.adjoints, Kind::input, evaluation.adjoints);
  write_adjoints(found.parameter_adjoints, Kind::parameter, evaluation.parameter_adjoints);

  const auto write_blocks = [&](const std::vector<Tensor>& blocks, const Derivatives& of,
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

Tally Model::evaluate(const Evaluation& evaluation, const Options& options) const {
  Tally tally;
  check_batch(evaluation.points, options);
  const std::vector<bool> copy =
      evaluation.points > 0 ? inputs_to_copy(*this, evaluation, options.newton().miters) : std::vector<bool>();
  // In fixed batches a parameter may be refused anywhere: before the first point is written.
  if (baked_batch_ != 0 && !uniform_parameters_.empty())
    for (std::int64_t begin = 0; begin < evaluation.points;) begin += chunk_at(begin, evaluation, options);
  if (evaluation.points == 0) clear_sums(evaluation);
  for (std::int64_t begin = 0; begin < evaluation.points;) {
    const std::int64_t points = chunk_at(begin, evaluation, options);
    for (std::int32_t status : run_chunk(evaluation, options, begin, points, copy)) tally.add(status, begin++);
  }
  return tally;
}

}  // namespace neml2_capi::model
