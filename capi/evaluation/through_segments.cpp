#include "capi/evaluation/through_segments.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "capi/base/error.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/marks.h"
#include "capi/evaluation/results.h"

namespace neml2_capi::model {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void note(const Chunk& chunk, Tally& tally) {
  tally.add(chunk.reports.status, chunk.reports.iterations, chunk.reports.residual_norm, chunk.begin);
  tally.note(chunk.non_finite);
}

}  // namespace

ThroughSegments::ThroughSegments(const Model& model) : PackageRoute(model) {
  for (const auto& segment : model.segments())
    bytes_per_point_ = std::max(bytes_per_point_, segment->bytes_per_point());
}

// If a package takes a parameter as one value for all points of a run, a range ends where the value changes.
std::int64_t ThroughSegments::end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                                           std::int64_t size) const {
  const std::int64_t wanted = std::min(size, bindings.points - begin);
  std::int64_t length = wanted;
  for (std::size_t index : model_.uniform_parameters()) {
    const Variable& parameter = model_.variables(Kind::parameter)[index];
    length = length_of_equal(bindings.parameters[index], parameter, begin, length);
    const bool baked = model_.baked_batch() != 0;
    if (length < wanted && (baked || options.whole_batch()))
      throw Error(
          NEML2_ERROR_SHAPE, parameter.name,
          join("A package takes one value of '", parameter.name, "' for all points of a run, so it cannot vary ",
               baked ? "within a fixed batch. Compile the model with --dynamic-batch."
                     : "within a batch that converges as a whole. Set convergence = point."));
  }
  return begin + length;
}

// Nothing is written before all packages have run.
void ThroughSegments::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                          Tally& tally) const {
  Chunk& chunk = workspace.chunk;
  Derived derived;
  try {
    derived = evaluate(chunk, plan, bindings, range.begin, range.points);
  } catch (const Error& error) {
    if (error.status() < NEML2_OK) throw;
    return run_one_by_one(plan, bindings, range, workspace, tally);
  }
  if (!begin_sums(plan, bindings, range)) return;
  write(chunk, bindings, derived, range.turns);
  note(chunk, tally);
  end_sums(plan, range);
  chunk.release_values();  // which hold memory, of the caller's perhaps
}

void ThroughSegments::run_one_by_one(const Plan& plan, const Bindings& bindings, const Range& range,
                                     Workspace& workspace, Tally& tally) const {
  if (!begin_sums(plan, bindings, range)) return;
  Chunk& chunk = workspace.chunk;
  const std::int64_t step =
      plan.options().whole_batch() ? range.points : std::max<std::int64_t>(model_.baked_batch(), 1);
  for (std::int64_t point = range.begin; point < range.begin + range.points; point += step) {
    Derived derived;
    try {
      derived = evaluate(chunk, plan, bindings, point, step);
    } catch (const Error& error) {
      if (error.status() < NEML2_OK) throw;
      derived = fail(chunk, bindings, error.status());
      tally.note(error.what(), point, error.cause());
    }
    write(chunk, bindings, derived, range.turns);
    note(chunk, tally);
  }
  end_sums(plan, range);
}

void ThroughSegments::fill(Chunk& chunk, const Plan& plan, const Bindings& bindings, std::int64_t begin,
                           std::int64_t points) const {
  const Request& request = plan.request();
  const auto& inputs = model_.variables(Kind::input);
  const auto& parameters = model_.variables(Kind::parameter);
  chunk.points = points;
  chunk.begin = begin;
  chunk.newton = plan.options().newton();
  chunk.newton.keep_history = request.history;
  chunk.substep_del_tol = plan.options().substep_del_tol();
  chunk.guesses.assign(bindings.guesses.empty() ? 0 : model_.num_values(), Tensor());
  for (std::size_t i = 0; i < bindings.guesses.size(); ++i)
    chunk.guesses[model_.values_of(Kind::unknown)[i]] =
        gather(bindings.guesses[i], model_.variables(Kind::unknown)[i], begin, points, false);
  chunk.keep_unknowns = bindings.unknowns != nullptr;
  chunk.by_parameters = request.by_parameters();
  chunk.by_values = request.by_values(model_);
  chunk.values.resize(model_.num_values());
  chunk.parameters.resize(parameters.size());
  if (chunk.keep_unknowns) chunk.unknowns.assign(model_.num_values(), Tensor());
  chunk.reports.begin(points, NEML2_OK, chunk.newton);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    chunk.values[model_.values_of(Kind::input)[i]] =
        gather(bindings.inputs[i], inputs[i], begin, points, bindings.copies[i]);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    chunk.parameters[i] = gather(bindings.parameters[i], parameters[i], begin, points, false);
}

// What is returned is found before anything is written: derivatives may be refused.
Derived ThroughSegments::evaluate(Chunk& chunk, const Plan& plan, const Bindings& bindings, std::int64_t begin,
                                  std::int64_t points) const {
  chunk.release_values();
  fill(chunk, plan, bindings, begin, points);
  const Request& request = plan.request();
  if (request.jvps && !request.blocks && !request.adjoints && !request.by_parameters()) {
    Derived derived;
    derived[Part::jvp] = run_along(chunk, bindings);
    return derived;
  }
  Vector<Vector<Block>> blocks;
  blocks.reserve(model_.segments().size());
  for (const auto& segment : model_.segments()) blocks.push_back(segment->run(chunk));
  return derive(chunk, bindings, blocks);
}

Vector<Tensor> ThroughSegments::run_along(Chunk& chunk, const Bindings& bindings) const {
  chunk.by_values = false;  // a segment that needs its blocks sees to it
  const Derivatives& derivatives = model_.derivatives(Kind::input);
  Directions directions{chunk.points, 0, model_.dtype(), {}};
  directions.of.resize(model_.num_values() + chunk.parameters.size());
  derivatives.start_jvp(directions,
                        gather_bound(bindings.tangents, model_.variables(Kind::input), chunk.begin, chunk.points));
  for (const auto& segment : model_.segments()) {
    segment->run_along(chunk, directions);
    chunk.by_values = false;
  }
  return derivatives.end_jvp(directions);
}

Derived ThroughSegments::derive(const Chunk& chunk, const Bindings& bindings,
                                const Vector<Vector<Block>>& blocks) const {
  const Derivatives::Chain chain{model_.segments(),       blocks,        chunk.points, model_.num_values(),
                                 chunk.parameters.size(), model_.dtype()};
  const auto gathered = [&](Part part) {
    return gather_bound(bindings.of(part), model_.variables(kind_of(part)), chunk.begin, chunk.points);
  };
  Derived derived;
  for (const Part part : derived_parts)
    if (any_bound(bindings.of(part))) derived[part] = model_.derive(part, chain, gathered);
  return derived;
}

// Makes all points of a chunk failed ones. Returns derivatives that are written as such: NaN, or not at all.
Derived ThroughSegments::fail(Chunk& chunk, const Bindings& bindings, std::int32_t status) const {
  chunk.release_values();
  std::fill(chunk.reports.status.begin(), chunk.reports.status.end(), status);
  std::fill(chunk.reports.iterations.begin(), chunk.reports.iterations.end(), 0);
  std::fill(chunk.reports.residual_norm.begin(), chunk.reports.residual_norm.end(), nan);
  std::fill(chunk.reports.suggested_cut.begin(), chunk.reports.suggested_cut.end(), 0.5);
  std::fill(chunk.reports.history.begin(), chunk.reports.history.end(), nan);
  const auto& unknowns = model_.variables(Kind::unknown);
  for (std::size_t i = 0; chunk.keep_unknowns && i < unknowns.size(); ++i) {
    Tensor& iterate = chunk.unknowns[model_.values_of(Kind::unknown)[i]];
    iterate = Tensor::empty(unknowns[i].dtype, Dims{chunk.points}.then(unknowns[i].point_shape));
    fill_nan(iterate.data_as<char>(), iterate.dtype(), iterate.numel());
  }
  Derived derived;
  for (const Part part : derived_parts)
    if (any_bound(bindings.of(part))) derived[part].resize(model_.count(part));
  return derived;
}

void ThroughSegments::write(Chunk& chunk, const Bindings& bindings, const Derived& derived, Turns* turns) const {
  const Vector<std::size_t> lost = mark(model_, bindings, chunk, derived);
  std::optional<Derived> marked;
  if (!lost.empty()) make_nan(lost, model_, chunk, marked.emplace(derived));
  write_results(model_, bindings, chunk);
  write_derivatives(model_, bindings, chunk, marked ? *marked : derived);
  for (std::size_t i = 0; i < bindings.iterates.size(); ++i)
    write_rows(chunk.values[model_.values_of(Kind::unknown)[i]], model_.variables(Kind::unknown)[i],
               bindings.iterates[i], chunk.begin, chunk.points);
  if (!bindings.unknowns) return;
  const auto alone = turns ? turns->alone() : std::unique_lock<locks::FreedMutex>();
  write_unknowns(model_, bindings, chunk);
}

}  // namespace neml2_capi::model
