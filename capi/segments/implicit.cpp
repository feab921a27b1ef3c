#include "capi/segments/implicit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "capi/base/error.h"
#include "capi/graph/algebra.h"
#include "capi/segments/krylov_system.h"
#include "capi/segments/misfit.h"
#include "capi/segments/package_system.h"
#include "capi/tensor/rows.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {
namespace {

std::vector<ValueGroup> value_groups(const std::vector<artifact::Group>& groups, ValueGroup::Role role, Scope& scope,
                                     const std::string& who) {
  std::vector<ValueGroup> out;
  for (const artifact::Group& group : groups) out.emplace_back(group, role, scope, who);
  return out;
}

void expect_row(const Package& package, std::size_t output, const Dims& row) {
  if (!(package.output_shape(output) == row))
    throw misfit(package.name(), "Output ", output, " of ", package.name(), " has the point shape ",
                 package.output_shape(output).str(), "; the metadata says ", row.str());
}

}  // namespace

ImplicitSegment::ImplicitSegment(const artifact::ImplicitSegment& segment, Scope& scope) : packages_(segment, scope) {
  packages_.residual.require_points_apart();
  scope.note_dtype(packages_.residual);
  dtype_ = scope.dtype();
  givens_ = value_groups(segment.givens, ValueGroup::Role::given, scope, name());
  unknowns_ = value_groups(segment.unknowns, ValueGroup::Role::unknown, scope, name());
  for (const ValueGroup& group : unknowns_)
    outputs_.insert(outputs_.end(), group.values().begin(), group.values().end());
  check_packages(segment);
  packages_.tail = ParameterTail(segment.parameters, packages_.residual, unknowns_.size() + givens_.size(), scope);
  add_predictor(segment, scope);
  const auto add = [&](const std::optional<artifact::Sensitivity>& sensitivity, bool of_parameters,
                       std::optional<Sensitivity>& added) {
    if (sensitivity)
      added.emplace(*sensitivity, packages_, unknowns_, givens_, segment.parameters, of_parameters, scope);
  };
  add(segment.given_sensitivity, false, given_sensitivity_);
  add(segment.parameter_sensitivity, true, parameter_sensitivity_);
  if (segment.max_substepping_level == 0) return;
  std::vector<std::size_t> givens;
  for (const ValueGroup& group : givens_) givens.insert(givens.end(), group.values().begin(), group.values().end());
  std::vector<std::size_t> predicted_from = predictor_ ? predictor_->inputs() : std::vector<std::size_t>();
  if (loop_) std::erase(predicted_from, loop_->input);
  substeps_.emplace(segment.substeps, outputs_, givens, predicted_from, segment.max_substepping_level, scope);
  for (const Package* package : packages())
    if (package->baked_batch() != 0)
      throw Error(NEML2_ERROR_UNSUPPORTED, package->name(),
                  join("Substeps are for some points of a batch, but ", package->name(), " takes exactly ",
                       package->baked_batch(), ". Compile the model with --dynamic-batch."));
}

void ImplicitSegment::check_packages(const artifact::ImplicitSegment& segment) const {
  const SolverPackages& all = packages_;
  const std::size_t residuals = all.num_residuals, blocks = residuals * unknowns_.size();
  const std::size_t inputs = unknowns_.size() + givens_.size() + segment.parameters.size();
  const auto expect_residuals = [&](const Package& package, std::size_t first) {
    for (std::size_t i = 0; i < residuals; ++i) expect_row(package, first + i, row_shape(segment.residuals[i]));
  };
  const auto expect_step = [&](const Package& package) {
    for (std::size_t i = 0; i < unknowns_.size(); ++i) expect_row(package, i, unknowns_[i].row_shape());
  };
  expect_arity(all.residual, inputs, residuals);
  expect_residuals(all.residual, 0);
  expect_operands(all.residual, unknowns_, givens_);
  if (all.jacobian) {
    expect_arity(*all.jacobian, inputs, blocks + residuals);
    expect_residuals(*all.jacobian, blocks);
    expect_operands(*all.jacobian, unknowns_, givens_);
  }
  if (all.solve) {
    expect_arity(*all.solve, blocks + residuals, unknowns_.size());
    expect_step(*all.solve);
    if (all.jacobian) expect_returned(*all.solve, 0, *all.jacobian, 0, blocks + residuals);
  }
  if (all.step) {
    expect_arity(*all.step, inputs, unknowns_.size() + residuals);
    expect_step(*all.step);
    expect_operands(*all.step, unknowns_, givens_);
  }
  if (all.krylov) check_krylov(all, segment.unknowns, segment.residuals);
}

void ImplicitSegment::add_predictor(const artifact::ImplicitSegment& segment, Scope& scope) {
  if (segment.feedback) {
    const artifact::Feedback& feedback = *segment.feedback;
    const Dims shape = feedback.sub_batch_shape.then(feedback.base_shape);
    loop_ = Loop{scope.provide(feedback.input), scope.provide(feedback.output), feedback.iterations, shape};
    scope.declare(loop_->input, shape, dtype_, "the predictor's loop");
  }
  if (segment.predictor) predictor_.emplace(*segment.predictor, scope);
}

bool ImplicitSegment::depends_on(std::size_t value) const {
  const auto holds = [&](const ValueGroup& group) {
    return std::ranges::find(group.values(), value) != group.values().end();
  };
  return std::ranges::any_of(givens_, holds);
}

std::vector<const PairInfo*> ImplicitSegment::pairs() const {
  std::vector<const PairInfo*> all;
  for (const auto* sensitivity : {&given_sensitivity_, &parameter_sensitivity_})
    if (*sensitivity)
      for (const PlacedPair& pair : (*sensitivity)->pairs()) all.push_back(&pair.info);
  return all;
}

std::vector<const Package*> ImplicitSegment::packages() const {
  std::vector<const Package*> packages = packages_.all();
  if (predictor_) packages.push_back(&predictor_->package());
  for (const auto* sensitivity : {&given_sensitivity_, &parameter_sensitivity_})
    if (*sensitivity)
      for (const Package* package : (*sensitivity)->packages()) packages.push_back(package);
  return packages;
}

std::int64_t ImplicitSegment::bytes_per_point() const {
  std::int64_t bytes = 0;
  for (const Package* package : packages_.all()) bytes = std::max(bytes, package->bytes_per_point());
  return bytes;
}

std::vector<std::size_t> ImplicitSegment::uniform_parameters() const {
  std::vector<std::size_t> uniform = packages_.tail.uniform();
  if (predictor_)
    uniform.insert(uniform.end(), predictor_->uniform_parameters().begin(), predictor_->uniform_parameters().end());
  return uniform;
}

// Sets the initial guess: what an earlier segment or the caller left in the unknowns, else zero; then what the
// predictor says.
void ImplicitSegment::predict(Chunk& chunk) const {
  const auto zeros = [&](std::size_t value, const Dims& point_shape) {
    const Dims sizes = Dims{chunk.points}.then(point_shape);
    chunk.values[value] =
        chunk.device.is_host() ? Tensor::zeros(dtype_, sizes) : algebra::filled(dtype_, sizes, 0.0, chunk.device);
  };
  for (const ValueGroup& group : unknowns_)
    for (std::size_t i = 0; i < group.values().size(); ++i)
      if (!chunk.values[group.values()[i]].data()) zeros(group.values()[i], group.point_shape(i));
  if (predictor_ && loop_) zeros(loop_->input, loop_->point_shape);
  for (std::int64_t pass = 0; predictor_ && pass < (loop_ ? loop_->passes : 1); ++pass) {
    predictor_->run(chunk);
    if (loop_) chunk.values[loop_->input] = chunk.values[loop_->output];
  }
}

// Begins at the guesses that the chunk has.
void ImplicitSegment::take_guesses(Operands& at, const Chunk& chunk) const {
  Chunk given;
  given.points = chunk.points;
  given.values = chunk.guesses;
  for (std::size_t i = 0; i < unknowns_.size(); ++i) {
    const Tensor guess = unknowns_[i].pack(given, dtype_);
    at.unknowns[i] = at.unknowns[i].copy();
    with_scalar(dtype_, [&]<class Scalar>(Scalar*) {
      const Scalar* from = guess.data_as<const Scalar>();
      Scalar* to = at.unknowns[i].data_as<Scalar>();
      for (std::int64_t k = 0; k < guess.numel(); ++k)
        if (!std::isnan(from[k])) to[k] = from[k];
    });
  }
}

Operands ImplicitSegment::prepare(Chunk& chunk) const {
  predict(chunk);
  Operands at;
  for (const ValueGroup& group : unknowns_) at.unknowns.push_back(group.pack(chunk, dtype_));
  for (const ValueGroup& group : givens_) at.givens.push_back(group.pack(chunk, dtype_));
  at.parameters = chunk.parameters;
  return at;
}

void ImplicitSegment::require_device(Device device) const {
  const auto refuse = [&](const char* what, const char* instead) {
    throw Error(NEML2_ERROR_UNSUPPORTED, name(),
                join(name(), " is solved ", what, ", which is not there on the device ", device.str(), " (runtime ",
                     "\"tensors\"). ", instead));
  };
  if (packages_.krylov || packages_.matvec)
    refuse("by an iterative linear solver", "Compile the model with a direct one.");
  if (substeps_) refuse("in substeps", "Compile the model without them.");
  if (packages_.step_is_taken) refuse("by a package of NEML2 3.0.2 or older", "Compile the model again.");
  for (const auto* sensitivity : {&given_sensitivity_, &parameter_sensitivity_})
    if (*sensitivity && (*sensitivity)->is_iterative())
      refuse("with iterative sensitivities", "Compile the model with a direct sensitivity solver.");
}

std::unique_ptr<newton::System> ImplicitSegment::system(Operands at, bool whole_batch) const {
  if (packages_.step) return std::make_unique<StepSystem>(packages_, std::move(at));
  if (!packages_.krylov && !packages_.solve)
    throw Error(NEML2_ERROR_UNSUPPORTED, name(),
                join("The artifact has kernels only, which cannot solve ", name(),
                     " without lanes: its Jacobian is not one of a point. Compile it with packages: neml2-capi "
                     "compile INPUT.i --kernels auto"));
  if (!packages_.krylov) return std::make_unique<DirectSystem>(packages_, std::move(at));
  return std::make_unique<KrylovSystem>(packages_, whole_batch, std::move(at));
}

Tensor ImplicitSegment::jacobian(const Operands& at) const {
  if (!packages_.jacobian)
    throw Error(NEML2_ERROR_UNSUPPORTED, "jacobian",
                "The artifact has no package for the Jacobian of this segment: its solver is matrix-free, or NEML2 was "
                "older than 3.0.7. Use neml2_system_step.");
  return matrix_of(packages_.linearize(at), packages_.residual_shapes(), row_shapes(unknowns_));
}

std::optional<Groups> ImplicitSegment::matvec(const Operands& at, const Groups& v) const {
  if (!packages_.matvec) return std::nullopt;
  Vector<Tensor> inputs = at.inputs(packages_.tail);
  inputs.insert(inputs.end(), v.begin(), v.end());
  return row_major(packages_.matvec->run(at.points(), std::move(inputs)));
}

Vector<Block> ImplicitSegment::differentiate(const Operands& at, const Chunk& chunk, bool all) const {
  Vector<Block> blocks;
  if (chunk.by_values && given_sensitivity_) blocks = given_sensitivity_->run(at, chunk, all);
  if (chunk.by_parameters && parameter_sensitivity_)
    for (Block& block : parameter_sensitivity_->run(at, chunk)) blocks.push_back(std::move(block));
  return blocks;
}

Vector<Block> ImplicitSegment::run(Chunk& chunk) const {
  if (substeps_ && !chunk.newton.in_rescue) return run_substepped(*this, *substeps_, chunk);
  Operands at = prepare(chunk);
  newton::Reports reports = solve(at, chunk);
  Vector<Block> blocks = differentiate(at, chunk);
  finish(std::move(at.unknowns), std::move(reports), chunk);
  return blocks;
}

void ImplicitSegment::run_along(Chunk& chunk, Directions& directions) const {
  if ((substeps_ && !chunk.newton.in_rescue) || !given_sensitivity_ || !given_sensitivity_->can_push_forward())
    return Segment::run_along(chunk, directions);
  Operands at = prepare(chunk);
  newton::Reports reports = solve(at, chunk);
  given_sensitivity_->push_forward(at, unknowns_, givens_, directions);
  finish(std::move(at.unknowns), std::move(reports), chunk);
}

// Solves from the unknowns of `at`, and leaves the solution in their place.
newton::Reports ImplicitSegment::solve(Operands& at, const Chunk& chunk) const {
  newton::Settings settings = chunk.newton;
  if (substeps_) settings.step_tol = chunk.substep_del_tol;
  const std::unique_ptr<newton::System> equations = system(at, settings.whole_batch);
  Vector<double> reference;
  if (!chunk.guesses.empty()) {
    norm(equations->residual(at.unknowns), reference);
    take_guesses(at, chunk);
  }
  return newton::solve(*equations, at.unknowns, settings, {name().c_str(), chunk.begin}, reference);
}

void ImplicitSegment::unpack(const Groups& unknowns, Chunk& chunk) const {
  for (std::size_t i = 0; i < unknowns.size(); ++i) unknowns_[i].unpack(unknowns[i], chunk);
}

// Adds the reports to what earlier segments reported.
void ImplicitSegment::finish(Groups unknowns, newton::Reports reports, Chunk& chunk) const {
  if (std::ranges::any_of(reports.status, [](std::int32_t status) { return status != NEML2_OK; }))
    mark_failed(unknowns, reports, chunk);
  unpack(unknowns, chunk);
  chunk.reports.add(std::move(reports));
}

// Sets the unknowns of failed points to NaN, so that nothing after them takes them for a solution.
void ImplicitSegment::mark_failed(Groups& unknowns, const newton::Reports& reports, Chunk& chunk) const {
  if (chunk.keep_unknowns) {
    unpack(unknowns, chunk);
    for (std::size_t value : outputs_) chunk.unknowns[value] = chunk.values[value];
  }
  for (std::size_t p = 0; p < reports.status.size(); ++p) {
    if (reports.status[p] == NEML2_OK) continue;
    for (Tensor& group : unknowns)
      with_scalar(dtype_, [&]<class Scalar>(Scalar*) {
        const std::int64_t n = row_size(group);
        std::fill_n(group.data_as<Scalar>() + static_cast<std::int64_t>(p) * n, n,
                    std::numeric_limits<Scalar>::quiet_NaN());
      });
  }
}

}  // namespace neml2_capi::model
