#include "capi/model/krylov_system.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "capi/error.h"
#include "capi/newton/rows.h"

namespace neml2_capi::model {
namespace {

Tensor side_by_side(const newton::Groups& groups) {
  if (groups.size() == 1) return groups.front();
  const std::int64_t points = groups.front().sizes()[0], item = groups.front().itemsize();
  std::int64_t total = 0, offset = 0;
  for (const Tensor& group : groups) total += group.sizes()[1];
  Tensor flat = Tensor::empty(groups.front().dtype(), {points, total});
  for (const Tensor& group : groups) {
    const std::int64_t width = group.sizes()[1];
    for (std::int64_t p = 0; p < points; ++p)
      std::memcpy(flat.data_as<char>() + (p * total + offset) * item, group.data_as<const char>() + p * width * item,
                  static_cast<std::size_t>(width * item));
    offset += width;
  }
  return flat;
}

Operands select(const Operands& at, const std::vector<std::int64_t>& rows) {
  return {newton::select_rows(at.unknowns, rows), newton::select_rows(at.givens, rows),
          newton::select_rows(at.parameters, rows)};
}

// What a package takes where it takes one value for all points.
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
    throw Error(NEML2_ERROR_ARTIFACT, package.name(),
                join(what, " of ", package.name(), " has the shape ", shape.str(), " per point; expected ",
                     wanted.str(), ". The folder mixes files of different compilations: compile the model again."));
}

// Does `package` begin with the first `count` inputs of `other`?
void expect_same_inputs(const Package& package, const Package& other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    expect_shape(package, join("Input ", i), package.input_shape(i), other.input_shape(i));
    if (package.batched_input(i) != other.batched_input(i) || package.input_dtype(i) != other.input_dtype(i))
      throw Error(NEML2_ERROR_ARTIFACT, package.name(),
                  join("Input ", i, " of ", package.name(), " is not that of ", other.name(),
                       ". The folder mixes files of different compilations: compile the model again."));
  }
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

void check_krylov(const std::vector<ValueGroup>& unknowns, const std::vector<artifact::Group>& residuals,
                  const Package& matvec, const Package& residual) {
  std::int64_t num_unknowns = 0, num_residuals = 0;
  const std::size_t shared = residual.num_inputs();
  expect_arity(matvec, shared + unknowns.size(), residuals.size());
  expect_same_inputs(matvec, residual, shared);
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    expect_dense(unknowns[i].row_shape(), "unknowns", residual.name());
    expect_shape(matvec, join("Input ", shared + i), matvec.input_shape(shared + i), unknowns[i].row_shape());
    num_unknowns += unknowns[i].row_shape().back();
  }
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    expect_dense(row_shape(residuals[i]), "residuals", residual.name());
    expect_shape(matvec, join("Output ", i), matvec.output_shape(i), row_shape(residuals[i]));
    num_residuals += row_shape(residuals[i]).back();
  }
  if (num_unknowns != num_residuals)
    throw Error(NEML2_ERROR_ARTIFACT, residual.name(),
                join(residual.name(), " has ", num_residuals, " residuals for ", num_unknowns, " unknowns."));
}

void check_preconditioner(const KrylovPackages& packages) {
  if (!packages.setup) return;
  const Package &setup = *packages.setup, &apply = *packages.apply, &matvec = *packages.matvec;
  const std::size_t with_parameters = packages.residual->num_inputs();
  const std::size_t without = with_parameters - packages.tail->size();
  if (setup.num_inputs() != without) expect_arity(setup, with_parameters, setup.num_outputs());
  expect_same_inputs(setup, *packages.residual, setup.num_inputs());
  const std::size_t states = setup.num_outputs();
  expect_arity(apply, states + 1, 1);
  for (std::size_t i = 0; i < states; ++i) {
    expect_shape(apply, join("Input ", i), apply.input_shape(i), setup.output_shape(i));
    const bool lost = setup.batched_output(i) && !apply.batched_input(i);
    if (lost || apply.input_dtype(i) != setup.output_dtype(i))
      throw Error(NEML2_ERROR_ARTIFACT, apply.name(),
                  join("Input ", i, " of ", apply.name(), " is not what ", setup.name(),
                       " returns. The folder mixes files of different compilations: compile the model again."));
  }
  Dims flat{0};
  for (std::size_t i = with_parameters; i < matvec.num_inputs(); ++i) flat[0] += matvec.input_shape(i).back();
  expect_shape(apply, join("Input ", states), apply.input_shape(states), flat);
  expect_shape(apply, "Output 0", apply.output_shape(0), flat);
}

KrylovSystem::KrylovSystem(const KrylovPackages& packages, const artifact::Krylov& krylov, bool whole_batch,
                           newton::Groups givens, std::vector<Tensor> parameters)
    : packages_(packages), krylov_(krylov), settings_(linear_settings(krylov, whole_batch)) {
  check_preconditioner(packages);
  for (std::size_t i = packages.residual->num_inputs(); i < packages.matvec->num_inputs(); ++i)
    widths_.push_back(packages.matvec->input_shape(i).back());
  at_.givens = std::move(givens);
  at_.parameters = std::move(parameters);
}

newton::Groups KrylovSystem::residual(const newton::Groups& u) {
  const Operands at = {u, at_.givens, at_.parameters};
  return row_major(packages_.residual->run(at.points(), at.inputs(*packages_.tail)));
}

newton::Groups KrylovSystem::linearize(const newton::Groups& u) {
  at_.unknowns = u;
  residual_ = residual(u);
  return residual_;
}

newton::Groups KrylovSystem::step(std::vector<std::int32_t>& singular) {
  const auto points = static_cast<std::size_t>(at_.points());
  singular_.resize(points, 0);
  newton::Operator preconditioner;
  if (packages_.setup) {
    set_up(rows_to_set_up());
    preconditioner = [this](const Tensor& r) { return precondition(r); };
  }
  const newton::Operator a = [this](const Tensor& v) { return times_operator(v); };
  Tensor du;
  last_iterations_ = newton::solve_linear(a, preconditioner, side_by_side(residual_), du, settings_).iterations;
  singular = singular_;
  return split(du);
}

Tensor KrylovSystem::times_operator(const Tensor& direction) const {
  std::vector<Tensor> inputs = at_.inputs(*packages_.tail);
  for (Tensor& group : split(direction)) inputs.push_back(std::move(group));
  return side_by_side(row_major(packages_.matvec->run(at_.points(), std::move(inputs))));
}

Tensor KrylovSystem::precondition(const Tensor& residual) const {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < state_.size(); ++i)
    inputs.push_back(packages_.apply->batched_input(i) ? state_[i] : without_rows(state_[i]));
  inputs.push_back(residual);
  return packages_.apply->run(at_.points(), std::move(inputs)).front();
}

std::vector<std::int64_t> KrylovSystem::rows_to_set_up() const {
  const auto slow = [&](std::int32_t iterations) { return iterations > krylov_.cache_max_its; };
  std::vector<std::int64_t> rows(static_cast<std::size_t>(at_.points()));
  std::iota(rows.begin(), rows.end(), 0);
  if (last_iterations_.empty() || krylov_.cache == artifact::Krylov::Cache::none) return rows;
  if (krylov_.cache == artifact::Krylov::Cache::chord) return {};
  const bool any = std::any_of(last_iterations_.begin(), last_iterations_.end(), slow);
  if (settings_.whole_batch) return any ? rows : std::vector<std::int64_t>();
  std::erase_if(rows, [&](std::int64_t row) { return !slow(last_iterations_[static_cast<std::size_t>(row)]); });
  return rows;
}

void KrylovSystem::set_up(const std::vector<std::int64_t>& rows) {
  ...
}

}  // namespace neml2_capi::model
