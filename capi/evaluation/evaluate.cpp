// The evaluation of a model: the batch in chunks, each through all segments, on one thread or several.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "capi/base/cache.h"
#include "capi/base/error.h"
#include "capi/capsule/capsule.h"
#include "capi/evaluation/work.h"
#include "capi/model/model.h"
#include "capi/segments/graph_call.h"
#include "capi/threads/pool.h"

namespace neml2_capi::model {

void Model::check_batch(std::int64_t points, const Options& options) const {
  if (baked_batch_ != 0 && points % baked_batch_ != 0)
    throw Error(NEML2_ERROR_SHAPE, limiting_package_,
                join(limiting_package_, " was compiled for a fixed batch of ", baked_batch_, " points; got ", points,
                     ". Evaluate a multiple of ", baked_batch_, ", or compile the model with --dynamic-batch."));
  if (options.whole_batch() && !device_.is_host())
    throw Error(NEML2_ERROR_UNSUPPORTED, "convergence",
                join("The option convergence = batch is not there on the device ", device_.str(),
                     " (runtime \"tensors\"): set convergence = point."));
  if (!device_.is_host() && points > greatest_batch_)
    throw Error(NEML2_ERROR_SHAPE, "batch",
                join("On the device ", device_.str(), " all points run at once, and the packages take at most ",
                     greatest_batch_, "; got ", points, ". Evaluate fewer points at a time."));
  if (options.whole_batch() && points > greatest_batch_)
    throw Error(NEML2_ERROR_SHAPE, "convergence",
                join("With the option convergence = batch all points run at once, and the packages take at most ",
                     greatest_batch_, "; got ", points, ". Evaluate fewer points, or set convergence = point."));
}

// How many points are evaluated together, if there are so many. Where the choice is the library's, what the largest
// package reads and writes takes at most half of the second-level cache, which leaves room for what happens inside.
// Several threads get several chunks each, of an amount of work beside which it is little to begin and end one.
std::int64_t Model::chunk_size(const Evaluation& evaluation, const Options& options, int threads) const {
  const std::int64_t points = evaluation.points;
  if (baked_batch_ != 0) return baked_batch_;
  if (options.whole_batch()) return points;
  if (options.chunk() != 0) return std::min(options.chunk(), greatest_batch_);
  constexpr std::int64_t least = 16, most = 2048;
  const GraphCall* graph = graph_for(evaluation);
  const std::int64_t bytes = graph ? graph->package().bytes_per_point() : bytes_per_point_;
  const std::int64_t fit = std::clamp(level2_cache() / 2 / std::max<std::int64_t>(bytes, 1), least, most);
  const auto in_cache = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(fit)));
  if (threads == 1) return std::min(in_cache, greatest_batch_);
  constexpr double worthwhile = 200e-6;  // seconds
  const double known = seconds_per_point_.load(std::memory_order_relaxed);
  const double guessed = unknown_values_.empty() ? 2e-7 : 3e-6;
  const double worthwhile_points = std::min(worthwhile / (known > 0 ? known : guessed), double{most});
  const std::int64_t shared = std::max(points / (4 * threads), static_cast<std::int64_t>(worthwhile_points));
  return std::min({in_cache, std::max<std::int64_t>(shared, 4), greatest_batch_});
}

// The end of the chunk of at most `size` points that begins here. Where a package takes a parameter as one value for
// all points of a run, a chunk ends where the value changes.
std::int64_t Model::end_of_chunk(std::int64_t begin, std::int64_t size, const Evaluation& evaluation,
                                 const Options& options) const {
  const std::int64_t wanted = std::min(size, evaluation.points - begin);
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
  return begin + length;
}

void Model::fill(Chunk& chunk, const Evaluation& evaluation, const Options& options, std::int64_t begin,
                 std::int64_t points) const {
  const auto& inputs = variables(Kind::input);
  const auto& parameters = variables(Kind::parameter);
  const auto size = static_cast<std::size_t>(points);
  chunk.points = points;
  chunk.begin = begin;
  chunk.newton = options.newton();
  chunk.newton.keep_history = evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY].data != nullptr;
  chunk.substep_del_tol = options.substep_del_tol();
  chunk.keep_unknowns = evaluation.unknowns != nullptr;
  chunk.by_values = any_bound(evaluation.blocks) || any_bound(evaluation.jvps) || any_bound(evaluation.adjoints);
  chunk.by_parameters = any_bound(evaluation.parameter_blocks) || any_bound(evaluation.parameter_adjoints);
  // What a parameter does to one segment goes on through the values of the next.
  chunk.by_values = chunk.by_values || (chunk.by_parameters && segments_.size() > 1);
  chunk.values.resize(num_values_);
  chunk.parameters.resize(parameters.size());
  if (chunk.keep_unknowns) chunk.unknowns.assign(num_values_, Tensor());
  chunk.status.assign(size, NEML2_OK);
  chunk.iterations.assign(size, 0);
  chunk.residual_norm.assign(size, 0.0);
  chunk.suggested_cut.assign(size, 1.0);
  if (chunk.newton.keep_history)
    chunk.history.assign(size * static_cast<std::size_t>(chunk.newton.miters),
                         std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    chunk.values[input_values_[i]] = gather(evaluation.inputs[i], inputs[i], begin, points, evaluation.copies[i]);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    chunk.parameters[i] = gather(evaluation.parameters[i], parameters[i], begin, points, false);
}

// All segments. What is returned is found before anything is written: derivatives may be refused.
Model::Found Model::run_segments(const Evaluation& evaluation, std::int64_t begin, Chunk& chunk) const {
  const bool blocks_wanted = any_bound(evaluation.blocks) || any_bound(evaluation.adjoints) || chunk.by_parameters;
  if (any_bound(evaluation.jvps) && !blocks_wanted) {
    Found found;
    found.jvps = run_along(evaluation, begin, chunk);
    return found;
  }
  Vector<Vector<Block>> blocks;
  blocks.reserve(segments_.size());
  for (const auto& segment : segments_) blocks.push_back(segment->run(chunk));
  return find_derivatives(evaluation, begin, chunk, blocks);
}

Model::Found Model::fail(const Evaluation& evaluation, std::int32_t status, Chunk& chunk) const {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  chunk.release_values();
  std::fill(chunk.status.begin(), chunk.status.end(), status);
  std::fill(chunk.iterations.begin(), chunk.iterations.end(), 0);
  std::fill(chunk.residual_norm.begin(), chunk.residual_norm.end(), nan);
  std::fill(chunk.suggested_cut.begin(), chunk.suggested_cut.end(), 0.5);
  std::fill(chunk.history.begin(), chunk.history.end(), nan);
  for (std::size_t i = 0; chunk.keep_unknowns && i < unknown_values_.size(); ++i) {
    const Variable& unknown = variables(Kind::unknown)[i];
    Tensor& iterate = chunk.unknowns[unknown_values_[i]];
    iterate = Tensor::empty(unknown.dtype, Dims{chunk.points}.then(unknown.point_shape));
    fill_nan(iterate.data_as<char>(), iterate.dtype(), iterate.numel());
  }
  // What is empty is written to failed points as NaN, or not at all.
  const auto empty = [](const std::vector<Points>& arrays) {
    return any_bound(arrays) ? Vector<Tensor>(arrays.size()) : Vector<Tensor>();
  };
  return {empty(evaluation.jvps), empty(evaluation.adjoints), empty(evaluation.parameter_adjoints),
          empty(evaluation.blocks), empty(evaluation.parameter_blocks)};
}

Vector<Tensor> Model::run_along(const Evaluation& evaluation, std::int64_t begin, Chunk& chunk) const {
  chunk.by_values = false;  // a segment that needs its blocks sees to it
  Directions directions{chunk.points, 0, dtype_, {}};
  directions.of.resize(num_values_ + parameters_.size());
  by_inputs_.start_jvp(directions, gather_bound(evaluation.tangents, variables(Kind::input), begin, chunk.points));
  for (const auto& segment : segments_) {
    segment->run_along(chunk, directions);
    chunk.by_values = false;
  }
  return by_inputs_.end_jvp(directions);
}

// The package that gives all that is wanted, where there is one.
const GraphCall* Model::graph_for(const Evaluation& evaluation) const {
  const bool more = any_bound(evaluation.parameter_blocks) || any_bound(evaluation.jvps) ||
                    any_bound(evaluation.adjoints) || any_bound(evaluation.parameter_adjoints) ||
                    evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY].data;
  if (more) return nullptr;
  return any_bound(evaluation.blocks) ? jacobian_graph_ : graph_;
}

void Model::gather_inputs(const GraphCall& graph, const Evaluation& evaluation, std::int64_t begin, std::int64_t points,
                          Handles& given, Vector<Tensor>& repeated) const {
  std::size_t next = 0;
  const auto give = [&](const Points& array, const Variable& variable, bool copy) {
    const std::size_t i = next++;
    if (array.stride != 0 || points == 1) {
      given[i] = new Tensor(gather(array, variable, begin, points, copy));
      return;
    }
    repeated.resize(given.size());
    Tensor& rows = repeated[i];
    if (!rows.data() || rows.sizes()[0] < points) rows = gather(array, variable, begin, points, copy);
    given[i] = new Tensor(rows);
    if (rows.sizes()[0] > points) *given[i] = first_rows(rows, points);
  };
  for (std::size_t i : graph_inputs_) give(evaluation.inputs[i], variables(Kind::input)[i], evaluation.copies[i]);
  for (std::size_t i : graph.parameters().positions())
    give(evaluation.parameters[i], variables(Kind::parameter)[i], false);
}

void Model::run_graph(const GraphCall& graph, const Evaluation& evaluation, std::int64_t begin, std::int64_t points,
                      Tally& tally, Vector<Tensor>& repeated) const {
  Handles given(graph.package().num_inputs());
  gather_inputs(graph, evaluation, begin, points, given, repeated);
  run_graph(graph, given, evaluation, begin, points, tally);
}

// False where a user's operator failed recoverably, before anything was written.
template <class Run>
static bool try_graph(Run&& run) {
  try {
    run();
    return true;
  } catch (const Error& error) {
    if (error.status() < NEML2_OK) throw;
    return false;
  }
}

// All points in one chunk. What a point takes is noted where it tells whether it is worth to share.
Tally Model::evaluate_at_once(const Evaluation& evaluation, const Options& options, bool note) const {
  std::optional<Stopwatch> watch;
  if (note) watch.emplace();
  Tally tally;
  const GraphCall* graph = graph_for(evaluation);
  Vector<Tensor> repeated;
  if (!graph || !try_graph([&] { run_graph(*graph, evaluation, 0, evaluation.points, tally, repeated); }))
    tally = Work(*this, evaluation, options, evaluation.points).run(1);
  if (note)
    seconds_per_point_.store(watch->seconds() / static_cast<double>(evaluation.points), std::memory_order_relaxed);
  return tally;
}

int Model::threads_for(std::int64_t points, const Options& options) const {
  if (points == 1) return 1;
  return options.threads() ? options.threads() : threads::available_processors();
}

Tally Model::evaluate(const Evaluation& evaluation, const Options& options) const {
  check_batch(evaluation, options, evaluation.points);
  if (evaluation.points == 0) {
    clear_sums(evaluation);
    return {};
  }
  return with_capsule(*this, evaluation, options,
                      [&](const Evaluation& watched) { return evaluate_points(watched, options); });
}

// In fixed batches a parameter may be refused anywhere: before the first point is written.
void Model::check_batch(const Evaluation& evaluation, const Options& options, std::int64_t size) const {
  check_batch(std::min(size, evaluation.points), options);
  if (evaluation.points > size) check_batch(evaluation.points % size, options);  // the last ones
  if (baked_batch_ != 0 && !uniform_parameters_.empty())
    for (std::int64_t begin = 0; begin < evaluation.points;)
      begin = end_of_chunk(begin, baked_batch_, evaluation, options);
}

Tally Model::evaluate_points(const Evaluation& evaluation, const Options& options) const {
  if (runs_in_lanes(evaluation, options)) return evaluate_in_lanes(evaluation, options);
  const int threads = threads_for(evaluation.points, options);
  const std::int64_t size = chunk_size(evaluation, options, threads);
  if (evaluation.points <= size) return evaluate_at_once(evaluation, options, threads > 1);
  return Work(*this, evaluation, options, size).run(threads);
}

// One value for all points has a row per point in the inputs of a package, and may be another one than before.
static void refill(const Tensor& rows, const Variable& variable, const Points& array) {
  const std::int64_t bytes = variable.point_shape.product() * itemsize(variable.dtype);
  if (std::memcmp(rows.data(), array.data, static_cast<std::size_t>(bytes)) != 0)
    gather(array, variable, 0, rows.sizes()[0], true).copy_to(rows.data());
}

// Nothing where an input must be copied, or where it is not known yet whether threads are to share the points.
std::optional<Model::Prepared> Model::prepare(const Evaluation& evaluation, const Options& options) const {
  const std::int64_t points = evaluation.points;
  const GraphCall* graph = graph_for(evaluation);
  if (!graph || options.capsule() || runs_in_lanes(evaluation, options)) return {};
  const int threads = threads_for(points, options);
  const bool undecided = threads > 1 && seconds_per_point_.load(std::memory_order_relaxed) == 0;
  if (undecided || chunk_size(evaluation, options, threads) < points) return {};
  Prepared prepared{graph, {}, {}};
  std::size_t position = 0;  // among the inputs of the package
  const auto note = [&](const Points& array, const Variable& variable) {
    const bool is_dense = dense(array, variable, points);
    if (!is_dense && array.stride == 0) prepared.repeated.push_back({position, &variable, array});
    ++position;
    return is_dense || array.stride == 0;
  };
  for (std::size_t i : graph_inputs_)
    if (evaluation.copies[i] || !note(evaluation.inputs[i], variables(Kind::input)[i])) return {};
  for (std::size_t i : graph->parameters().positions())
    if (!note(evaluation.parameters[i], variables(Kind::parameter)[i])) return {};
  Handles given(graph->package().num_inputs());
  Vector<Tensor> repeated;
  gather_inputs(*graph, evaluation, 0, points, given, repeated);
  prepared.inputs = given.take();
  return prepared;
}

Tally Model::repeat(const Prepared& prepared, const Evaluation& evaluation) const {
  for (const auto& [position, variable, array] : prepared.repeated) refill(prepared.inputs[position], *variable, array);
  Handles given(prepared.inputs.size());
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = new Tensor(prepared.inputs[i]);
  Tally tally;
  if (!try_graph([&] { run_graph(*prepared.graph, given, evaluation, 0, evaluation.points, tally); }))
    tally = Work(*this, evaluation, options(), evaluation.points).run(1);
  return tally;
}

}  // namespace neml2_capi::model
