#include "capi/segments/krylov_system.h"

#include <algorithm>
#include <numeric>

#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/segments/misfit.h"
#include "capi/tensor/rows.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {
namespace {

// Returns the value of a package that takes one for all points.
Tensor without_rows(const Tensor& rows) {
  const Dims shape = rows.sizes().last(rows.ndim() - 1), strides = rows.strides().last(rows.ndim() - 1);
  return Tensor(rows.storage(), rows.dtype(), shape, strides, rows.offset());
}

void expect_dense(const Dims& row, const char* kind, const std::string& name) {
  if (row.size() != 1)
    throw Error(NEML2_ERROR_UNSUPPORTED, name,
                join("A group of ", kind, " of ", name, " keeps its sub-batch axes, with the shape ", row.str(),
                     " per point. The iterative linear solvers take dense groups only: compile the model with a "
                     "direct linear solver, DenseLU or SchurComplement."));
}

void expect_shape(const Package& package, const std::string& what, const Dims& shape, const Dims& wanted) {
  if (!(shape == wanted))
    throw misfit(package.name(), what, " of ", package.name(), " has the shape ", shape.str(), " per point; expected ",
                 wanted.str());
}

// Throws unless `package` begins with the first `count` inputs of `other`.
void expect_same_inputs(const Package& package, const Package& other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    expect_shape(package, join("Input ", i), package.input_shape(i), other.input_shape(i));
    if (package.batched_input(i) != other.batched_input(i) || package.input_dtype(i) != other.input_dtype(i))
      throw misfit(package.name(), "Input ", i, " of ", package.name(), " is not that of ", other.name());
  }
}

void check_preconditioner(const SolverPackages& packages, const Dims& flat) {
  const Package &setup = *packages.setup, &apply = *packages.apply;
  const std::size_t states = setup.num_outputs();
  // Parameters come last, and it may do without.
  if (setup.num_inputs() > packages.residual.num_inputs()) expect_arity(setup, packages.residual.num_inputs(), states);
  expect_same_inputs(setup, packages.residual, setup.num_inputs());
  expect_arity(apply, states + 1, 1);
  for (std::size_t i = 0; i < states; ++i) {
    expect_shape(apply, join("Input ", i), apply.input_shape(i), setup.output_shape(i));
    const bool rows_are_lost = setup.batched_output(i) && !apply.batched_input(i);
    if (rows_are_lost || apply.input_dtype(i) != setup.output_dtype(i))
      throw misfit(apply.name(), "Input ", i, " of ", apply.name(), " is not what ", setup.name(), " returns");
  }
  expect_shape(apply, join("Input ", states), apply.input_shape(states), flat);
  expect_shape(apply, "Output 0", apply.output_shape(0), flat);
}

}  // namespace

newton::LinearSettings linear_settings(const artifact::Krylov& krylov, bool whole_batch) {
  newton::LinearSettings settings;
  settings.method = krylov.method == artifact::Krylov::Method::gmres ? newton::LinearSettings::Method::gmres
                                                                     : newton::LinearSettings::Method::bicgstab;
  settings.restart = krylov.restart;
  settings.max_its = krylov.max_its;
  settings.abs_tol = krylov.abs_tol;
  settings.rel_tol = krylov.rel_tol;
  settings.whole_batch = whole_batch;
  return settings;
}

void check_krylov(const SolverPackages& packages, const std::vector<artifact::Group>& unknowns,
                  const std::vector<artifact::Group>& residuals) {
  const Package &residual = packages.residual, &matvec = *packages.matvec;
  const std::size_t shared = residual.num_inputs();
  expect_arity(matvec, shared + unknowns.size(), residuals.size());
  expect_same_inputs(matvec, residual, shared);
  std::int64_t num_unknowns = 0, num_residuals = 0;
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    const Dims row = row_shape(unknowns[i]);
    expect_dense(row, "unknowns", residual.name());
    expect_shape(matvec, join("Input ", shared + i), matvec.input_shape(shared + i), row);
    num_unknowns += row.back();
  }
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const Dims row = row_shape(residuals[i]);
    expect_dense(row, "residuals", residual.name());
    expect_shape(matvec, join("Output ", i), matvec.output_shape(i), row);
    num_residuals += row.back();
  }
  if (num_unknowns != num_residuals)
    throw misfit(residual.name(), residual.name(), " has ", num_residuals, " residuals for ", num_unknowns,
                 " unknowns");
  if (packages.setup) check_preconditioner(packages, {num_unknowns});
}

KrylovSystem::KrylovSystem(const SolverPackages& packages, bool whole_batch, Operands at)
    : PackageSystem(packages, std::move(at)), settings_(linear_settings(*packages.krylov, whole_batch)) {
  for (const Tensor& group : at_.unknowns) widths_.push_back(group.sizes()[1]);
}

Groups KrylovSystem::linearize(const Groups& u) { return residual_ = residual(u); }

Groups KrylovSystem::step(Vector<std::int32_t>& singular) {
  const auto points = static_cast<std::size_t>(at_.points());
  singular_.resize(points, 0);
  newton::Operator preconditioner;
  if (packages_.setup) {
    set_up(rows_to_set_up());
    preconditioner = [this](const Tensor& r) { return precondition(r); };
  }
  const newton::Operator a = [this](const Tensor& v) { return times_operator(v); };
  Tensor du;
  newton::LinearOutcome outcome = newton::solve_linear(a, preconditioner, side_by_side(residual_), du, settings_);
  if (log::on(log::Channel::linear, log::Level::debug))
    log::write(log::Channel::linear, log::Level::debug, packages_.residual.name(), ": ",
               std::count(outcome.converged.begin(), outcome.converged.end(), 1), " of ", points,
               " linear systems solved, in at most ",
               *std::max_element(outcome.iterations.begin(), outcome.iterations.end()), " iterations");
  last_iterations_ = std::move(outcome.iterations);
  singular = singular_;
  return split(du);
}

Tensor KrylovSystem::times_operator(const Tensor& direction) const {
  Vector<Tensor> inputs = at_.inputs(packages_.tail);
  for (Tensor& group : split(direction)) inputs.push_back(std::move(group));
  return side_by_side(row_major(packages_.matvec->run(at_.points(), std::move(inputs))));
}

Tensor KrylovSystem::precondition(const Tensor& residual) const {
  Vector<Tensor> inputs;
  for (std::size_t i = 0; i < state_.size(); ++i)
    inputs.push_back(packages_.apply->batched_input(i) ? state_[i] : without_rows(state_[i]));
  inputs.push_back(residual);
  return packages_.apply->run(at_.points(), std::move(inputs)).front();
}

Vector<std::int64_t> KrylovSystem::rows_to_set_up() const {
  const artifact::Krylov& krylov = *packages_.krylov;
  const auto slow = [&](std::int32_t iterations) { return iterations > krylov.cache_max_its; };
  Vector<std::int64_t> rows(static_cast<std::size_t>(at_.points()));
  std::iota(rows.begin(), rows.end(), 0);
  if (last_iterations_.empty() || krylov.cache == artifact::Krylov::Cache::none) return rows;
  if (krylov.cache == artifact::Krylov::Cache::chord) return {};
  const bool any = std::any_of(last_iterations_.begin(), last_iterations_.end(), slow);
  if (settings_.whole_batch) return any ? rows : Vector<std::int64_t>();
  std::erase_if(rows, [&](std::int64_t row) { return !slow(last_iterations_[static_cast<std::size_t>(row)]); });
  return rows;
}

void KrylovSystem::set_up(const Vector<std::int64_t>& rows) {
  if (rows.empty()) return;
  const bool all = static_cast<std::int64_t>(rows.size()) == at_.points();
  // A batch that is compiled in runs as a whole.
  const bool some = !all && packages_.setup->baked_batch() == 0;
  const Operands at = some ? select(at_, rows) : at_;
  Vector<Tensor> inputs = at.inputs(packages_.tail);
  inputs.resize(packages_.setup->num_inputs());
  graph::SingularInfo info;
  const Groups state = row_major(packages_.setup->run(at.points(), std::move(inputs), &info));
  const Vector<std::int32_t> singular = by_point(info, at.points());
  if (all) {
    // Copies, since what a package returns is not to be written to.
    state_.clear();
    for (const Tensor& tensor : state) state_.push_back(tensor.copy());
    singular_ = singular;
    return;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t from = some ? static_cast<std::int64_t>(i) : rows[i];
    copy_row(state, from, state_, rows[i]);
    singular_[static_cast<std::size_t>(rows[i])] = singular[static_cast<std::size_t>(from)];
  }
}

Groups KrylovSystem::split(const Tensor& flat) const {
  if (widths_.size() == 1) return {flat};
  Groups groups;
  std::int64_t offset = 0;
  for (std::int64_t width : widths_) {
    groups.push_back(part(flat, 1, offset, width).row_major());
    offset += width;
  }
  return groups;
}

void KrylovSystem::keep(const Vector<std::int64_t>& rows) {
  PackageSystem::keep(rows);
  residual_ = select_rows(residual_, rows);
  state_ = select_rows(state_, rows);
  for (auto* values : {&singular_, &last_iterations_}) newton::keep_rows(*values, rows);
}

}  // namespace neml2_capi::model
