#include "capi/segments/implicit.h"

#include <algorithm>
#include <limits>

#include "capi/base/error.h"
#include "capi/libtorch/algebra.h"
#include "capi/newton/verdict.h"
#include "capi/segments/direct_system.h"
#include "capi/segments/step_system.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

std::vector<ValueGroup> value_groups(const std::vector<artifact::Group>& groups, ValueGroup::Role role, Scope& scope) {
  std::vector<ValueGroup> out;
  for (const artifact::Group& group : groups) out.emplace_back(group, role, scope);
  return out;
}

void expect_row(const Package& package, std::size_t output, const Dims& row) {
  if (!(package.output_shape(output) == row))
    throw Error(NEML2_ERROR_ARTIFACT, package.name(),
                join("Output ", output, " of ", package.name(), " has the point shape ",
                     package.output_shape(output).str(), "; the metadata says ", row.str(), "."));
}

}  // namespace

ImplicitSegment::ImplicitSegment(const artifact::ImplicitSegment& segment, Scope& scope)
    : residual_(scope.load(segment.residual_package)),
      step_is_taken_(segment.step_is_taken),
      num_residuals_(segment.residuals.size()) {
  scope.note_dtype(residual_);
  dtype_ = scope.dtype();
  givens_ = value_groups(segment.givens, ValueGroup::Role::given, scope);
  unknowns_ = value_groups(segment.unknowns, ValueGroup::Role::unknown, scope);
  for (const ValueGroup& group : unknowns_)
    outputs_.insert(outputs_.end(), group.values().begin(), group.values().end());
  const std::size_t groups = unknowns_.size() + givens_.size();
  expect_arity(residual_, groups + segment.parameters.size(), num_residuals_);
  for (std::size_t i = 0; i < num_residuals_; ++i) expect_row(residual_, i, row_shape(segment.residuals[i]));
  tail_ = ParameterTail(segment.parameters, residual_, groups, scope);
  add_solver(segment, scope);
  add_predictor(segment, scope);
  add_sensitivities(segment, scope);
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

void ImplicitSegment::add_solver(const artifact::ImplicitSegment& segment, Scope& scope) {
  const auto load = [&](const std::string& name, std::optional<Package>& package) {
    if (!name.empty()) package.emplace(scope.load(name));
  };
  load(segment.jacobian_package, jacobian_);
  load(segment.solve_package, solve_);
  load(segment.step_package, step_);
  load(segment.matvec_package, matvec_);
  load(segment.preconditioner_setup_package, preconditioner_setup_);
  load(segment.preconditioner_apply_package, preconditioner_apply_);
  krylov_ = segment.krylov;
  const std::size_t blocks = num_residuals_ * unknowns_.size();
  if (jacobian_) {
    expect_arity(*jacobian_, residual_.num_inputs(), blocks + num_residuals_);
    for (std::size_t i = 0; i < num_residuals_; ++i)
      expect_row(*jacobian_, blocks + i, row_shape(segment.residuals[i]));
  }
  if (solve_) {
    expect_arity(*solve_, blocks + num_residuals_, unknowns_.size());
    for (std::size_t i = 0; i < unknowns_.size(); ++i) expect_row(*solve_, i, unknowns_[i].row_shape());
  }
  if (step_) {
    expect_arity(*step_, residual_.num_inputs(), unknowns_.size() + num_residuals_);
    for (std::size_t i = 0; i < unknowns_.size(); ++i) expect_row(*step_, i, unknowns_[i].row_shape());
  }
  if (krylov_) check_krylov(krylov_packages(), segment.unknowns, segment.residuals);
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

void ImplicitSegment::add_sensitivities(const artifact::ImplicitSegment& segment, const Scope& scope) {
  const std::size_t groups = unknowns_.size() + givens_.size();
  const auto add_blocks = [&](const artifact::Sensitivity& sensitivity, bool of_parameters) {
    (of_parameters ? parameter_blocks_ : given_blocks_)
        .emplace(sensitivity, segment.parameters, groups, of_parameters, scope);
  };
  if (segment.given_sensitivity && !segment.given_sensitivity->block_package.empty()) {
    add_blocks(*segment.given_sensitivity, false);
  } else if (segment.given_sensitivity) {
    if (!jacobian_)
      throw Error(NEML2_ERROR_ARTIFACT, segment.given_sensitivity->operator_package,
                  "The metadata lists derivatives of an implicit segment without the Jacobian that they need. Compile "
                  "the model again.");
    const StepPackages step = {&*jacobian_, solve_ ? &*solve_ : nullptr, &tail_, num_residuals_};
    given_sensitivity_.emplace(*segment.given_sensitivity, step, unknowns_, givens_, scope);
  }
  if (segment.parameter_sensitivity && !segment.parameter_sensitivity->block_package.empty())
    add_blocks(*segment.parameter_sensitivity, true);
  else if (segment.parameter_sensitivity)
    parameter_sensitivity_.emplace(*segment.parameter_sensitivity, segment.parameters, groups, scope);
}

std::vector<const PairInfo*> ImplicitSegment::pairs() const {
  std::vector<const PairInfo*> all;
  if (given_sensitivity_)
    for (const PlacedPair& pair : given_sensitivity_->pairs()) all.push_back(&pair.info);
  if (parameter_sensitivity_)
    for (const PlacedPair& pair : parameter_sensitivity_->pairs()) all.push_back(&pair.info);
  for (const auto* blocks : {&given_blocks_, &parameter_blocks_})
    if (*blocks)
      for (const PlacedPair& pair : (*blocks)->pairs()) all.push_back(&pair.info);
  return all;
}

std::vector<const Package*> ImplicitSegment::packages() const {
  std::vector<const Package*> packages = {&residual_};
  for (const auto* package : {&jacobian_, &solve_, &step_, &matvec_, &preconditioner_setup_, &preconditioner_apply_})
    if (*package) packages.push_back(&**package);
  if (predictor_) packages.push_back(&predictor_->package());
  const auto add = [&](const std::vector<const Package*>& more) {
    packages.insert(packages.end(), more.begin(), more.end());
  };
  if (given_sensitivity_) add(given_sensitivity_->packages());
  if (parameter_sensitivity_) add(parameter_sensitivity_->packages());
  for (const auto* blocks : {&given_blocks_, &parameter_blocks_})
    if (*blocks) packages.push_back(&(*blocks)->package());
  return packages;
}

std::int64_t ImplicitSegment::bytes_per_point() const {
  std::int64_t bytes = residual_.bytes_per_point();
  for (const auto* package : {&jacobian_, &solve_, &step_, &matvec_, &preconditioner_setup_, &preconditioner_apply_})
    if (*package) bytes = std::max(bytes, (*package)->bytes_per_point());
  return bytes;
}

std::vector<std::size_t> ImplicitSegment::uniform_parameters() const {
  std::vector<std::size_t> uniform = tail_.uniform();
  if (predictor_)
    uniform.insert(uniform.end(), predictor_->uniform_parameters().begin(), predictor_->uniform_parameters().end());
  return uniform;
}

// The initial guess: what an earlier segment or the caller left in the unknowns, else zero; then what the predictor
// says.
void ImplicitSegment::predict(Chunk& chunk) const {
  const auto zeros = [&](std::size_t value, const Dims& point_shape) {
    const Dims sizes = Dims{chunk.points}.then(point_shape);
    chunk.values[value] = chunk.device.is_host() ? Tensor::zeros(dtype_, sizes)
                                                 : aoti::libtorch::filled(dtype_, sizes, 0.0, chunk.device);
  };
  for (const ValueGroup& group : unknowns_)
    for (std::size_t i = 0; i < group.values().size(); ++i)
      if (!chunk.values[group.values()[i]].data()) zeros(group.values()[i], group.point_shape(i));
  if (!predictor_) return;
  if (loop_) zeros(loop_->input, loop_->point_shape);
  for (std::int64_t pass = 0; pass < (loop_ ? loop_->passes : 1); ++pass) {
    predictor_->run(chunk);
    if (loop_) chunk.values[loop_->input] = chunk.values[loop_->output];
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
  if (krylov_ || matvec_) refuse("by an iterative linear solver", "Compile the model with a direct one.");
  if (substeps_) refuse("in substeps", "Compile the model without them.");
  if (step_is_taken_) refuse("by a package of NEML2 3.0.2 or older", "Compile the model again.");
  if (given_sensitivity_ && given_sensitivity_->is_iterative())
    refuse("with iterative sensitivities", "Compile the model with a direct sensitivity solver.");
  if (parameter_sensitivity_ && parameter_sensitivity_->is_iterative())
    refuse("with iterative sensitivities", "Compile the model with a direct sensitivity solver.");
}

std::unique_ptr<newton::System> ImplicitSegment::system(Operands at, bool whole_batch) const {
  if (step_)
    return std::make_unique<StepSystem>(StepSystem::Packages{residual_, *step_, tail_, step_is_taken_}, std::move(at));
  if (!krylov_)
    return std::make_unique<DirectSystem>(DirectSystem::Packages{residual_, *jacobian_, *solve_, tail_, num_residuals_},
                                          std::move(at));
  return std::make_unique<KrylovSystem>(krylov_packages(), *krylov_, whole_batch, std::move(at));
}

KrylovPackages ImplicitSegment::krylov_packages() const {
  const auto optional = [](const std::optional<Package>& package) { return package ? &*package : nullptr; };
  return {&residual_, &*matvec_, optional(preconditioner_setup_), optional(preconditioner_apply_), &tail_};
}

Vector<Tensor> ImplicitSegment::jacobian(const Operands& at) const {
  if (!jacobian_)
    throw Error(NEML2_ERROR_UNSUPPORTED, "jacobian",
                "The artifact has no package for the Jacobian of this segment: its solver is matrix-free, or NEML2 was "
                "older than 3.0.7. Use neml2_system_step.");
  return row_major(StepPackages{&*jacobian_, nullptr, &tail_, num_residuals_}.linearize(at));
}

std::optional<Groups> ImplicitSegment::matvec(const Operands& at, const Groups& v) const {
  if (!matvec_) return std::nullopt;
  Vector<Tensor> inputs = at.inputs(tail_);
  inputs.insert(inputs.end(), v.begin(), v.end());
  return row_major(matvec_->run(at.points(), std::move(inputs)));
}

Vector<Block> ImplicitSegment::differentiate(const Operands& at, const Chunk& chunk, bool all) const {
  Vector<Block> blocks;
  if (chunk.by_values && given_sensitivity_) blocks = given_sensitivity_->run(at, chunk, all);
  if (chunk.by_parameters && parameter_sensitivity_)
    for (Block& block : parameter_sensitivity_->run(at, chunk)) blocks.push_back(std::move(block));
  if (chunk.by_values && given_blocks_) blocks = given_blocks_->run(at, chunk);
  if (chunk.by_parameters && parameter_blocks_)
    for (Block& block : parameter_blocks_->run(at, chunk)) blocks.push_back(std::move(block));
  return blocks;
}

Vector<Block> ImplicitSegment::run(Chunk& chunk) const {
  if (substeps_) return run_substepped(*this, *substeps_, chunk);
  Operands at = prepare(chunk);
  const newton::Outcome outcome = solve(at, chunk);
  Vector<Block> blocks = differentiate(at, chunk);
  finish(std::move(at.unknowns), outcome, chunk);
  return blocks;
}

void ImplicitSegment::run_along(Chunk& chunk, Directions& directions) const {
  if (substeps_ || !given_sensitivity_ || !given_sensitivity_->can_push_forward())
    return Segment::run_along(chunk, directions);
  Operands at = prepare(chunk);
  const newton::Outcome outcome = solve(at, chunk);
  given_sensitivity_->push_forward(at, unknowns_, givens_, directions);
  finish(std::move(at.unknowns), outcome, chunk);
}

// From the unknowns of `at` to the solution, in their place.
newton::Outcome ImplicitSegment::solve(Operands& at, const Chunk& chunk) const {
  return newton::solve(*system(at, chunk.newton.whole_batch), at.unknowns, chunk.newton, {name().c_str(), chunk.begin});
}

void ImplicitSegment::unpack(const Groups& unknowns, Chunk& chunk) const {
  for (std::size_t i = 0; i < unknowns.size(); ++i) unknowns_[i].unpack(unknowns[i], chunk);
}

// Adds the outcome to what earlier segments reported.
void ImplicitSegment::finish(Groups unknowns, const newton::Outcome& outcome, Chunk& chunk) const {
  bool failed = false;
  for (std::size_t p = 0; p < chunk.status.size(); ++p) {
    chunk.iterations[p] += outcome.iterations[p];
    if (!(outcome.residual_norm[p] <= chunk.residual_norm[p])) chunk.residual_norm[p] = outcome.residual_norm[p];
    if (outcome.status[p] == NEML2_OK) continue;
    failed = true;
    if (chunk.status[p] == NEML2_OK) chunk.status[p] = outcome.status[p];
    chunk.suggested_cut[p] =
        std::min(chunk.suggested_cut[p], newton::suggested_cut(outcome.initial_norm[p], outcome.residual_norm[p]));
  }
  chunk.history = outcome.history;
  if (failed) mark_failed(unknowns, outcome, chunk);
  unpack(unknowns, chunk);
}

// The unknowns of failed points become NaN, so that nothing after them takes them for a solution.
void ImplicitSegment::mark_failed(Groups& unknowns, const newton::Outcome& outcome, Chunk& chunk) const {
  if (chunk.keep_unknowns) {
    unpack(unknowns, chunk);
    for (std::size_t value : outputs_) chunk.unknowns[value] = chunk.values[value];
  }
  for (std::size_t p = 0; p < outcome.status.size(); ++p) {
    if (outcome.status[p] == NEML2_OK) continue;
    for (Tensor& group : unknowns)
      with_scalar(dtype_, [&](auto* type) {
        using Scalar = std::remove_pointer_t<decltype(type)>;
        const std::int64_t n = row_size(group);
        std::fill_n(group.data_as<Scalar>() + static_cast<std::int64_t>(p) * n, n,
                    std::numeric_limits<Scalar>::quiet_NaN());
      });
  }
}

}  // namespace neml2_capi::model
